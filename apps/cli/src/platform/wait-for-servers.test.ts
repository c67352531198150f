import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import type { ResourceType } from '@thv/kube/objects/types'
import { describe, expect, it } from 'vitest'
import type { ServerState } from './server-states.ts'
import { waitForServers } from './wait-for-servers.ts'

const LIMIT_MS = 60_000

/** A platform whose operator is ready; its API server cannot be reached at every look. */
function wait(isReachable: (look: number) => boolean, servers: () => readonly object[] = () => []) {
  const clock = new TestClock()
  const shown: (readonly ServerState[])[] = []
  let looks = 0
  const client = {
    tryGet: async () => {
      if (!isReachable(++looks)) throw new ThvError('kube_unreachable', 'Connect Timeout Error')
      return { metadata: { name: 'toolhive-operator' }, status: { availableReplicas: 1 } }
    },
    list: async () => ({ metadata: {}, items: [] }),
    listAll: async ({ kind }: ResourceType) => ({ metadata: {}, items: kind === 'MCPServer' ? servers() : [] }),
  } as unknown as KubeClient
  const view = { show: (states: readonly ServerState[]) => void shown.push(states), end: () => {} }
  const ended = waitForServers({ client, view, since: 0, limitMs: LIMIT_MS, clock, signal: undefined })
  return { clock, shown, ended, looks: () => looks }
}

describe('waiting for the servers of a platform', () => {
  it('goes on when a busy machine keeps it from reaching the API server for a while', async () => {
    const { clock, ended, shown } = wait((look) => look > 3)
    await clock.advance(5_000)
    expect(await ended).toEqual([{ name: 'operator', state: 'ready', detail: '' }])
    expect(shown.length).toBe(1)
  })

  it('shows the cause of a failure at the next look, a moment later', async () => {
    const conditions = [{ type: 'Ready', status: 'False', reason: 'BackendNotMcp', message: 'It is not an MCP server.' }]
    const server = { metadata: { namespace: 'default', name: 'web' }, status: { phase: 'Pending', conditions: [] as object[] } }
    const { clock, shown, ended } = wait(
      () => true,
      () => [server],
    )
    await clock.advance(2_000)
    expect(shown.at(-1)?.[1]).toMatchObject({ name: 'web', state: 'starting' })
    server.status.conditions = conditions
    await clock.advance(500)
    const failing = { name: 'web', state: 'failing', detail: 'It is not an MCP server.' }
    expect(shown.at(-1)?.[1]).toEqual(failing)
    await clock.advance(30_000)
    expect((await ended)[1]).toEqual(failing)
  })

  it('ends when the API server cannot be reached for longer than it may wait', async () => {
    const { clock, ended, looks } = wait(() => false)
    const failed = expect(ended).rejects.toThrow('Connect Timeout Error')
    for (let second = 0; second < LIMIT_MS / 1_000 + 2; second++) await clock.advance(1_000)
    await failed
    expect(looks()).toBeGreaterThan(50)
  })
})
