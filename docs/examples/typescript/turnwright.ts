// The contract of docs/temporal-interface.md in TypeScript: its JSON as types, and the calls that every client needs.
// A field with a question mark is left out at its default; the contract names the default.

import { setTimeout as sleep } from 'node:timers/promises';

import {
  ApplicationFailure,
  Client,
  Connection,
  WorkflowFailedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  type WorkflowHandle,
} from '@temporalio/client';

export interface SessionInput {
  session_id: string;
  packages?: string[] | null;
  excluded?: string[] | null;
  providers?: Record<string, string | null> | null;
  settings?: Record<string, Record<string, unknown>> | null;
  locale?: string;
}

export interface SessionResult {
  session_id: string;
  completed_player_turns: number;
}

export interface Submit {
  action_id: string;
  text: string;
  payload?: unknown;
}

export interface Run {
  action_id: string;
  runtime_id: string;
  payload?: unknown;
}

export interface Receipt {
  turn_id: string;
  workflow_id: string;
  position: number;
}

export interface Resolve {
  ref: string;
  decision: 'approve' | 'deny';
  note?: string;
  actor?: string;
}

export interface ResolveReceipt {
  ref: string;
  outcome: 'applied' | 'superseded';
}

export interface Interject {
  interjection_id: string;
  text: string;
}

export interface InterjectReceipt {
  interjection_id: string;
  turn_id?: string | null;
}

export interface Configure {
  packages?: string[] | null;
  excluded?: string[] | null;
  providers?: Record<string, string | null> | null;
  settings?: Record<string, Record<string, unknown>> | null;
  bindings?: Record<string, string> | null;
  locale?: string | null;
}

export interface ConfigureReceipt {
  revision: number;
}

export interface Control {
  action: 'pause' | 'resume' | 'end' | 'cancel-turn';
  turn_id?: string | null;
}

export interface ControlReceipt {
  status: 'active' | 'paused' | 'ended';
  ending?: boolean;
}

export interface SessionView {
  session_id: string;
  status: 'active' | 'paused' | 'ended' | 'failed';
  phase: 'setup' | 'playing';
  completed_player_turns: number;
  queue: QueuedAction[];
  running: QueuedAction | null;
  approvals: Approval[];
  jobs: OpenJob[];
  last_turn: LastTurn | null;
  revision: number;
  notices: Notice[];
}

export interface QueuedAction {
  action_id: string;
  turn_id: string;
  origin?: 'player' | 'continuation' | 'manual' | 'background' | 'recursive' | 'resume';
}

export interface Approval {
  ref: string;
  turn_id: string;
  runtime_id: string;
  call_id: string;
  tool: string;
  workflow_id: string;
  arguments?: string;
  opened_at: number;
  deadline: number;
  status: 'open' | 'approved' | 'denied' | 'expired' | 'withdrawn';
}

export interface OpenJob {
  job: JobRef;
  started_at?: number | null;
}

export interface JobRef {
  job_id: string;
  turn_id: string;
  runtime_id: string;
  settle?: boolean;
  max_settle_wait_ms?: number;
  max_queue_ms?: number;
  max_execution_ms?: number;
}

export interface LastTurn {
  turn_id: string;
  status: 'committed' | 'rejected' | 'stopped' | 'failed';
  message?: string;
}

export interface Notice {
  code: string;
  message?: string;
  refused?: number | null;
}

export interface TurnResult {
  session_id: string;
  turn_id: string;
  status: 'committed' | 'rejected' | 'stopped';
  logical_turn?: number;
  completed_player_turns?: number;
  reason?: string;
  message?: string;
  story?: Story | null;
  output?: unknown;
  runs?: RunOutcome[];
  committed?: CommittedCounts;
  jobs?: JobRef[];
  usage?: UsageTotals;
}

export interface Story {
  runtime_id: string;
  text: string;
  complete?: boolean;
  message_id?: string | null;
}

export interface RunOutcome {
  runtime_id: string;
  status: 'success' | 'skipped' | 'suspended' | 'failed';
  reason?: string;
  message?: string;
}

export interface CommittedCounts {
  messages?: number;
  data?: number;
  state?: number;
  events?: number;
  exports?: number;
}

export interface UsageTotals {
  calls?: number;
  unknown?: number;
  input_tokens?: number;
  output_tokens?: number;
  cost_usd?: number;
  unpriced?: number;
}

export interface GraphView {
  session_id: string;
  turn_id: string;
  status: 'running' | 'committed' | 'rejected' | 'stopped';
  logical_turn: number;
  nodes: NodeState[];
  edges?: [string, string][];
  diagnostics?: string[];
}

export interface NodeState {
  runtime_id: string;
  stage?: 'setup' | 'pre-turn' | 'narrative' | 'post-turn' | 'audit' | null;
  kind?: 'agent' | 'function';
  status?: 'waiting' | 'running' | 'success' | 'skipped' | 'suspended' | 'failed' | 'deferred';
  reason?: string;
  message?: string;
  started_at?: number | null;
  ended_at?: number | null;
  usage?: UsageTotals;
}

// Every update of a session: its message, its answer.
interface Updates {
  submit: [Submit, Receipt];
  run: [Run, Receipt];
  resolve: [Resolve, ResolveReceipt];
  interject: [Interject, InterjectReceipt];
  configure: [Configure, ConfigureReceipt];
  control: [Control, ControlReceipt];
}

// The escaping of workflow ids: encodeURIComponent keeps !'()* and escapes : and @.
export function segment(id: string): string {
  return encodeURIComponent(id)
    .replace(/[!'()*]/g, (kept) => '%' + kept.charCodeAt(0).toString(16).toUpperCase())
    .replace(/%3A/g, ':')
    .replace(/%40/g, '@');
}

// Throws WorkflowExecutionAlreadyStartedError where the session runs, or has ended.
export function start(client: Client, input: SessionInput): Promise<WorkflowHandle> {
  return client.workflow.start('Session', {
    workflowId: `session/${segment(input.session_id)}`,
    taskQueue: 'turnwright',
    args: [input],
    workflowTaskTimeout: '3s',
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
  });
}

export function update<Name extends keyof Updates>(
  session: WorkflowHandle,
  name: Name,
  message: Updates[Name][0],
): Promise<Updates[Name][1]> {
  return session.executeUpdate<Updates[Name][1], [Updates[Name][0]]>(name, { args: [message] });
}

export function state(session: WorkflowHandle): Promise<SessionView> {
  return session.query<SessionView>('state');
}

export function graph(client: Client, turn: Receipt): Promise<GraphView> {
  return onceThere(() => client.workflow.getHandle(turn.workflow_id).query<GraphView>('graph'));
}

// Waits for the end of the turn; for ever, where it is taken out of the queue before it began.
export function resultOf(client: Client, turn: Receipt): Promise<TurnResult> {
  return onceThere(() => client.workflow.getHandle(turn.workflow_id).result());
}

// A turn that is queued has no workflow yet.
async function onceThere<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      await sleep(200);
    }
  }
}

// What Turnwright refused, in an error of the client: `type` is the code, `message` begins with it.
export function refusal(error: unknown): ApplicationFailure | undefined {
  const wrapped = error instanceof WorkflowUpdateFailedError || error instanceof WorkflowFailedError;
  const cause = wrapped ? error.cause : error;
  return cause instanceof ApplicationFailure ? cause : undefined;
}

export function explain(error: unknown): string {
  return refusal(error)?.message ?? String(error);
}

// Gives `play` a client of the server at TEMPORAL_ADDRESS, and tells what made it fail.
export async function connected(play: (client: Client) => Promise<void>): Promise<void> {
  const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS ?? '127.0.0.1:7233' });
  try {
    await play(new Client({ connection }));
  } catch (error) {
    console.error(explain(error));
    process.exitCode = 1;
  } finally {
    await connection.close();
  }
}
