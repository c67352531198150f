import { normaliseMcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/normalise'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WireClient } from '../../../packages/gateway/src/testing/wire-client.ts'
import { resolveAudit } from '../../operator/src/proxy/resolve/audit.ts'
import { contributionOf } from '../../operator/src/proxy/resolve/testing/snapshot.ts'
import { spawnReadyRunner } from './testing/runner-process.ts'

let fixture: Fixture
beforeEach(async () => {
  fixture = await startFixture()
})
afterEach(() => fixture.stop())

/** The runner of an MCPRemoteProxy with this audit block. */
function startProxy(audit: object) {
  const { spec } = normaliseMcpRemoteProxy({ spec: { remoteUrl: fixture.url, audit } } as never)
  const { runConfig } = contributionOf(resolveAudit({ audit: spec.audit, telemetry: spec.telemetry }))
  return spawnReadyRunner({ remote_url: fixture.url, remote_policy: { allow_loopback: true }, transport: 'streamable-http', ...runConfig })
}

const eventsOf = (output: readonly string[]) => output.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))

describe('the audit log of a runner process', () => {
  it('[002-103] has an event for every request: who, what, outcome', async () => {
    await using runner = await startProxy({ enabled: true, component: 'tickets' })
    const client = new WireClient(runner.url)
    await client.modernCall('echo', { text: 'hello' })
    await client.modernCall('rpc_error')
    await client.post('{')
    await fetch(`${runner.base}/nothing`)
    await expect.poll(() => eventsOf(runner.output)).toHaveLength(4)
    const anonymous = { subjects: { user: 'anonymous' }, source: { value: '127.0.0.1' }, component: 'tickets' }
    expect(eventsOf(runner.output)).toMatchObject([
      { ...anonymous, type: 'mcp_tool_call', target: { method: 'tools/call', name: 'echo' }, outcome: 'success' },
      { ...anonymous, type: 'mcp_tool_call', target: { name: 'rpc_error' }, outcome: 'application_error' },
      { ...anonymous, type: 'http_request', target: { endpoint: '/mcp' }, outcome: 'failure' },
      { ...anonymous, type: 'http_request', target: { endpoint: '/nothing' }, outcome: 'failure' },
    ])
    expect(runner.output.join('\n')).not.toContain('hello')
  })

  it('has all events when the runner ends', async () => {
    await using runner = await startProxy({ enabled: true })
    const client = new WireClient(runner.url)
    for (let i = 0; i < 50; i++) await client.modernCall('echo')
    expect(await runner.stop()).toBe(0)
    await expect.poll(() => eventsOf(runner.output)).toHaveLength(50)
  })

  it('delays no call when its reader stops; says how many events were lost, and the process ends', async () => {
    await using runner = await startProxy({ enabled: true, includeRequestData: true, maxDataSize: 1_048_576 })
    runner.pauseOutput()
    const client = new WireClient(runner.url)
    const args = { items: Array.from({ length: 50 }, () => 'x'.repeat(8_000)) } // 400 kB in the event
    for (let i = 0; i < 40; i++) expect((await client.modernCall('echo', args)).status).toBe(200)
    await expect.poll(() => runner.log.join('')).toContain('listening')
    runner.resumeOutput()
    const droppedIn = () =>
      eventsOf(runner.output).reduce((sum, { type, metadata }) => sum + (type === 'audit_dropped' ? metadata.extra.dropped : 0), 0)
    const writtenIn = () => eventsOf(runner.output).filter(({ type }) => type === 'mcp_tool_call').length
    await expect.poll(() => writtenIn() + droppedIn(), { timeout: 30_000 }).toBe(40)
    expect(droppedIn()).toBeGreaterThan(0)

    runner.pauseOutput()
    for (let i = 0; i < 3; i++) await client.modernCall('echo', args)
    await runner.stop() // a blocking write to the full pipe would keep the process from exiting
  })
})
