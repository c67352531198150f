import type { McpError } from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'vitest'
import { connectSse, type SsePeer, type SsePeerOptions } from './sse-peer.ts'

export interface Door {
  /** Of `/sse`. */
  readonly url: string
}

/** Something a client of HTTP+SSE must be able to do through the runner, whatever the server behind it speaks. */
export interface Scenario {
  readonly name: string
  run(door: Door): Promise<void>
}

export const PATIENT = { timeout: 20_000, interval: 20 }

/** A client that can be asked gets a stdio process to itself. */
export const OWN_PROCESS: SsePeerOptions = { capabilities: { roots: {} } }

export function withPeer(name: string, run: (peer: SsePeer, door: Door) => Promise<void>, options?: SsePeerOptions): Scenario {
  return {
    name,
    async run(door) {
      await using peer = await connectSse(door.url, options)
      await run(peer, door)
    },
  }
}

export async function failureOf(promise: Promise<unknown>): Promise<McpError> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  if ('error' in outcome) return outcome.error as McpError
  throw new Error(`did not fail: ${JSON.stringify(outcome.value)}`)
}

/** Begins a tool call, and waits until it has reached the server. No other call may run meanwhile. */
export async function arrived<T>(peer: SsePeer, begin: () => Promise<T>): Promise<{ readonly answer: Promise<T> }> {
  // Each look is a call itself.
  const before = await callsOf(peer)
  let looks = 0
  const answer = begin()
  await expect.poll(async () => (await callsOf(peer)) - before - ++looks, PATIENT).toBe(1)
  return { answer }
}

async function callsOf(peer: SsePeer): Promise<number> {
  const { methods } = await peer.json('fixture_stats')
  return Number((methods as Record<string, number>)['tools/call'] ?? 0)
}
