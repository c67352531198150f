import type { BackendProblem } from '@thv/gateway/backend'
import { TestClock } from '@thv/kernel/clock'
import type { KubeClient, KubeEvent, Pod } from '@thv/kube'
import { LISTENING_PORTS_CONDITION } from '@thv/kube/objects/listening-ports'
import { describe, expect, it } from 'vitest'
import { configOf, memoryLog } from '../testing/runtime-fixtures.ts'
import { createOwnerEvents } from './owner-events.ts'

const OWNER = { api_version: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPServer', name: 'demo', uid: 'u1' }
const CLOSED: BackendProblem = { reason: 'BackendPortClosed', message: 'Nothing listens on port 9000 of the MCP server.' }
const NOT_MCP: BackendProblem = { reason: 'BackendNotMcp', message: 'The program on port 9000 does not speak HTTP.' }

function setUp(document: Record<string, unknown> = {}, pods: readonly Pod[] = []) {
  const clock = new TestClock()
  const created: KubeEvent[] = []
  const patches: unknown[] = []
  const client = {
    create: async (_type: unknown, event: KubeEvent) => {
      created.push(event)
      return event
    },
    patch: async (_type: unknown, _key: unknown, patch: unknown) => void patches.push(patch),
  } as unknown as KubeClient
  const config = configOf({ transport: 'streamable-http', target_port: 9000, owner: OWNER, ...document })
  const events = createOwnerEvents({ config, namespace: 'team', instance: 'demo-abc', client, pods: () => pods, clock, log: memoryLog() })
  return { clock, created, patches, events, reasons: () => created.map(({ reason }) => reason) }
}

describe('events on the owner', () => {
  it('name the MCPServer, the pod of the runner, the cause and the field to change', async () => {
    const { events, created, clock } = setUp()
    events.report(CLOSED)
    await clock.advance(0)
    expect(created).toMatchObject([
      {
        type: 'Warning',
        reason: 'BackendPortClosed',
        note: expect.stringMatching(/^Nothing listens on port 9000 .* Set spec\.mcpPort .*spec\.transport to stdio\.$/),
        regarding: { apiVersion: OWNER.api_version, kind: 'MCPServer', namespace: 'team', name: 'demo', uid: 'u1' },
        reportingController: 'toolhive.stacklok.dev/proxyrunner',
        reportingInstance: 'demo-abc',
      },
    ])
  })

  it('name the port that the server really listens on, where the node tells', async () => {
    const pod = (message: string): Pod => ({
      metadata: { name: 'demo-0' },
      status: { conditions: [{ type: LISTENING_PORTS_CONDITION, status: 'True', message }] },
    })
    const one = setUp({}, [pod('8080')])
    one.events.report(CLOSED)
    const more = setUp({}, [pod('8080, 9100')])
    more.events.report(CLOSED)
    await Promise.all([one.clock.advance(0), more.clock.advance(0)])
    expect(one.created[0]?.note).toContain('It listens on port 8080: set spec.mcpPort to 8080.')
    expect(more.created[0]?.note).toContain('It listens on ports 8080, 9100')
  })

  it('name that port as soon as it is known, though the cause was reported a moment before', async () => {
    const status: NonNullable<Pod['status']> = {}
    const { events, clock, created } = setUp({}, [{ metadata: { name: 'demo-0' }, status }])
    events.report(CLOSED)
    await clock.advance(2_000)
    status.conditions = [{ type: LISTENING_PORTS_CONDITION, status: 'True', message: 'The processes listen on 8017.' }]
    for (let second = 0; second < 50; second++) {
      events.report(CLOSED)
      await clock.advance(1_000)
    }
    expect(created.map(({ note }) => /port 8017/.test(note ?? ''))).toEqual([false, true])
  })

  it('are sent once for one cause, at most once a minute for each reason, and taken back when the server answers', async () => {
    const { events, clock, reasons, patches } = setUp()
    for (let second = 0; second < 50; second++) {
      events.report(second % 2 === 0 ? CLOSED : NOT_MCP)
      await clock.advance(1_000)
    }
    expect(reasons()).toEqual(['BackendPortClosed', 'BackendNotMcp'])
    for (let second = 0; second < 5; second++) {
      events.report(undefined)
      await clock.advance(1_000)
    }
    expect(reasons()).toEqual(['BackendPortClosed', 'BackendNotMcp', 'BackendRecovered'])
    for (let second = 0; second < 300; second++) {
      events.report(CLOSED)
      await clock.advance(1_000)
    }
    expect(reasons()).toHaveLength(3) // the repetition is counted in the first event
    expect(patches).toHaveLength(1)
  })

  it('are not sent for a server without owner, nor before anything was wrong', async () => {
    const ownerless = setUp({ owner: undefined })
    ownerless.events.report(CLOSED)
    const fine = setUp()
    fine.events.report(undefined)
    await Promise.all([ownerless.clock.advance(0), fine.clock.advance(0)])
    expect([ownerless.created, fine.created]).toEqual([[], []])
  })
})
