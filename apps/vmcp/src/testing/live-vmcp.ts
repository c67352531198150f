import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLifecycle } from '@thv/kernel/lifecycle'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { parseVmcpConfig } from '../config/load-vmcp-config.ts'
import { startVmcp } from '../vmcp-server.ts'
import { FIRST_WAIT_MS } from './test-vmcp.ts'

/** A file of a virtual server with these backends. */
export function documentOf(backends: readonly object[], more: object = {}): string {
  return JSON.stringify({
    ...{ name: 'joined', groupRef: 'group', incomingAuth: { type: 'anonymous' }, outgoingAuth: { source: 'inline' }, backends },
    ...{ aggregation: { conflictResolution: 'prefix' }, ...more },
  })
}

/** A whole virtual server that follows its file, in this process. */
export async function startLive(text: string) {
  const folder = mkdtempSync(join(tmpdir(), 'vmcp-live-'))
  const path = join(folder, 'config.yaml')
  writeFileSync(path, text)
  const lifecycle = createLifecycle()
  const log = new CollectingLog()
  const running = await startVmcp({
    ...{ config: parseVmcpConfig(text, path), file: { path, text }, lifecycle, log, env: {} },
    ...{ host: '127.0.0.1', port: 0, sessionTtlMs: 60_000, version: '0.0.1', firstWaitMs: FIRST_WAIT_MS },
  })
  await running.live.first
  await running.offer.view.attempted
  return {
    ...running,
    log,
    write: (next: string) => writeFileSync(path, next),
    status: async () => (await (await fetch(`${running.base}/status`)).json()) as { config: Record<string, unknown>; backends: unknown[] },
    metrics: async () => await (await fetch(`${running.base}/metrics`)).text(),
    async [Symbol.asyncDispose]() {
      await lifecycle.shutdown('the test is over')
      rmSync(folder, { recursive: true })
    },
  }
}
