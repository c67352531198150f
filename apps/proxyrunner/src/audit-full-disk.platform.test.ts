import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { canMountDisks, fillDisk, mountSmallDisk, refuseLongerFiles } from '@thv/testkit/run/small-disk'
import { describe, expect, it } from 'vitest'
import { spawnReadyRunner } from './testing/runner-process.ts'

/** False: the system refuses the runner longer files instead. */
const canMount = canMountDisks()

/** In the event, which is 400 kB; more than 8 MiB of them do not fit into the queue. */
const ARGUMENTS = { items: Array.from({ length: 50 }, () => 'x'.repeat(8_000)) }
const CALLS = 60

describe('a disk without room for the audit file', () => {
  it('delays and fails no call, is logged once and counted, and the file goes on without a torn line when there is room', async () => {
    await using stack = new AsyncDisposableStack()
    const fixture = stack.use(await startFixture())
    const folder = mkdtempSync(join(tmpdir(), 'thv-audit-disk-'))
    stack.defer(() => rmSync(folder, { recursive: true }))
    if (canMount) stack.use(mountSmallDisk(folder, '48m'))
    const file = join(folder, 'audit.log')
    const metricsPort = await freePort()
    const runner = stack.use(
      await spawnReadyRunner({
        ...{ remote_url: fixture.url, remote_policy: { allow_loopback: true }, transport: 'streamable-http' },
        audit_config: { log_file: file, include_request_data: true, max_data_size: 1_048_576 },
        telemetry_config: { prometheus_port: metricsPort },
      }),
    )
    const client = new WireClient(runner.url)
    const call = async (args: object = {}) => expect((await client.modernCall('echo', args)).status).toBe(200)
    const counted = async (name: string) => {
      const page = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
      return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(page)?.[1] ?? Number.NaN)
    }
    const lines = () => readFileSync(file, 'utf8').split('\n')
    await call()
    await expect.poll(() => lines().length, { timeout: 30_000 }).toBe(2)

    const giveBack = canMount ? fillDisk(folder) : refuseLongerFiles(runner.pid)
    for (let at = 0; at < CALLS; at++) await call(ARGUMENTS)
    const failures = () => runner.log.join('').match(/could not write audit events/g)?.length
    await expect.poll(failures, { timeout: 30_000 }).toBe(1)
    expect(runner.log.join('')).toContain(canMount ? 'ENOSPC' : 'EFBIG')
    const dropped = await counted('toolhive_audit_dropped_total')
    expect(dropped).toBeGreaterThan(0)
    expect(dropped).toBeLessThan(CALLS)
    expect(await counted('toolhive_audit_events_total')).toBe(1 + CALLS)

    giveBack()
    interface Line {
      readonly type: string
      readonly metadata: { readonly extra: { readonly dropped?: number } }
    }
    /** Every line but the last is whole. */
    const events = () =>
      lines()
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Line)
    const written = () => events().filter(({ type }) => type === 'mcp_tool_call').length
    await expect.poll(written, { timeout: 60_000, interval: 50 }).toBe(1 + CALLS - dropped)
    await call()
    await expect.poll(written, { timeout: 60_000, interval: 50 }).toBe(2 + CALLS - dropped)
    const reported = events().map(({ metadata }) => metadata.extra.dropped ?? 0)
    expect(reported.reduce((sum, count) => sum + count, 0)).toBe(dropped)
    expect(await runner.stop()).toBe(0)
    expect(lines().at(-1)).toBe('')
  })
})
