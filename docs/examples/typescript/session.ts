// One turn of a session, with @temporalio/client alone: start, submit, answer the approvals, wait for the end.
//
//   npm run play -- night-train "I read the letter."
//
// TEMPORAL_ADDRESS names the server; 127.0.0.1:7233 when it is not set.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { WorkflowExecutionAlreadyStartedError, type Client, type WorkflowHandle } from '@temporalio/client';

import { connected, resultOf, segment, start, state, update, type Resolve } from './turnwright.js';

// A new session, or the one that runs already; one that has ended refuses the action.
async function open(client: Client, sessionId: string): Promise<WorkflowHandle> {
  try {
    return await start(client, { session_id: sessionId });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    return client.workflow.getHandle(`session/${segment(sessionId)}`);
  }
}

// Approves every call of this turn, by a signal: nothing comes back, the first answer wins.
async function approve(session: WorkflowHandle, turnId: string, ended: AbortSignal): Promise<void> {
  const answered = new Set<string>();
  while (!ended.aborted) {
    for (const approval of (await state(session)).approvals) {
      if (approval.status === 'open' && approval.turn_id === turnId && !answered.has(approval.ref)) {
        answered.add(approval.ref);
        console.log(`approve ${approval.tool} ${approval.arguments ?? ''}`);
        await session.signal<[Resolve]>('resolve', { ref: approval.ref, decision: 'approve', actor: 'session.ts' });
      }
    }
    await sleep(200);
  }
}

async function play(client: Client, sessionId: string, text: string): Promise<void> {
  const session = await open(client, sessionId);
  const turn = await update(session, 'submit', { action_id: randomUUID(), text });
  console.log(`turn ${turn.turn_id}, ${turn.position} before it`);

  const ended = new AbortController();
  const approving = approve(session, turn.turn_id, ended.signal);
  const result = await resultOf(client, turn).finally(() => ended.abort());
  await approving;

  console.log(`${result.status} ${result.reason ?? ''}`.trim());
  console.log(result.story?.text ?? '(no story)');
  console.log(`${result.usage?.calls ?? 0} model calls, ${result.usage?.cost_usd ?? 0} USD`);
}

const [sessionId = 'night-train', text = 'I look out of the window.'] = process.argv.slice(2);
await connected((client) => play(client, sessionId, text));
