// One turn of a session, with @temporalio/client alone: start, submit, answer the approval, wait for the end.
//
//   npm run play -- night-train "I read the letter."
//
// TEMPORAL_ADDRESS names the server; 127.0.0.1:7233 when it is not set.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import {
  ApplicationFailure,
  Client,
  Connection,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  type WorkflowHandle,
} from '@temporalio/client';

interface Receipt {
  turn_id: string;
  workflow_id: string;
  position: number;
}

interface Approval {
  ref: string;
  turn_id: string;
  tool: string;
  arguments?: string;
  status: 'open' | 'approved' | 'denied' | 'expired' | 'withdrawn';
}

interface SessionView {
  status: 'active' | 'paused' | 'ended';
  completed_player_turns: number;
  approvals: Approval[];
}

interface TurnResult {
  status: 'committed' | 'rejected' | 'stopped';
  reason?: string;
  message?: string;
  story?: { runtime_id: string; text: string; complete?: boolean };
  usage?: { calls?: number; input_tokens?: number; output_tokens?: number; cost_usd?: number };
}

// The escaping of docs/temporal-interface.md: encodeURIComponent keeps !'()* and escapes : and @.
function segment(id: string): string {
  return encodeURIComponent(id)
    .replace(/[!'()*]/g, (kept) => '%' + kept.charCodeAt(0).toString(16).toUpperCase())
    .replace(/%3A/g, ':')
    .replace(/%40/g, '@');
}

async function start(client: Client, sessionId: string): Promise<WorkflowHandle> {
  const workflowId = `session/${segment(sessionId)}`;
  try {
    return await client.workflow.start('Session', {
      workflowId,
      taskQueue: 'turnwright',
      args: [{ session_id: sessionId }],
      workflowTaskTimeout: '3s',
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    return client.workflow.getHandle(workflowId); // it runs already, or it has ended and submit says so
  }
}

// A turn that is queued does not exist yet; once it does, result() waits for its end.
async function resultOf(client: Client, receipt: Receipt): Promise<TurnResult> {
  for (;;) {
    try {
      return await client.workflow.getHandle(receipt.workflow_id).result();
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      await sleep(200);
    }
  }
}

// Approves every call of this turn, by a signal: nothing comes back, the first answer wins.
async function approve(session: WorkflowHandle, turnId: string, ended: AbortSignal): Promise<void> {
  const answered = new Set<string>();
  while (!ended.aborted) {
    const view = await session.query<SessionView>('state');
    for (const approval of view.approvals) {
      if (approval.status === 'open' && approval.turn_id === turnId && !answered.has(approval.ref)) {
        answered.add(approval.ref);
        console.log(`approve ${approval.tool} ${approval.arguments ?? ''}`);
        await session.signal('resolve', { ref: approval.ref, decision: 'approve', actor: 'session.ts' });
      }
    }
    await sleep(200);
  }
}

async function play(client: Client, sessionId: string, text: string): Promise<void> {
  const session = await start(client, sessionId);
  const receipt = await session.executeUpdate<Receipt, [object]>('submit', {
    args: [{ action_id: randomUUID(), text }],
  });
  console.log(`turn ${receipt.turn_id}, ${receipt.position} before it`);

  const ended = new AbortController();
  const approving = approve(session, receipt.turn_id, ended.signal);
  const result = await resultOf(client, receipt).finally(() => ended.abort());
  await approving;

  console.log(`${result.status} ${result.reason ?? ''}`.trim());
  console.log(result.story?.text ?? '(no story)');
  console.log(`${result.usage?.calls ?? 0} model calls, ${result.usage?.cost_usd ?? 0} USD`);
}

// The type of the failure is the code (cause.type); the message begins with it.
function explain(error: unknown): string {
  const cause = error instanceof WorkflowUpdateFailedError ? error.cause : error;
  return cause instanceof ApplicationFailure ? cause.message : String(error);
}

async function main(): Promise<void> {
  const [sessionId = 'night-train', text = 'I look out of the window.'] = process.argv.slice(2);
  const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS ?? '127.0.0.1:7233' });
  try {
    await play(new Client({ connection }), sessionId, text);
  } catch (error) {
    console.error(explain(error));
    process.exitCode = 1;
  } finally {
    await connection.close();
  }
}

await main();
