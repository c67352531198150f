import type { Resolve } from '@thv/http/outbound/guarded-connector'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { createLifecycle } from '@thv/kernel/lifecycle'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { readVmcpDocument } from '@thv/vmcpconfig/read-vmcp-config'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import type { Env } from '../discover/forwarded-headers.ts'
import { type RunningVmcp, startVmcp, type VmcpServerOptions } from '../vmcp-server.ts'

export interface TestVmcp extends RunningVmcp, AsyncDisposable {
  readonly logged: readonly string[]
}

export interface TestVmcpOptions {
  /** Name to URL. */
  readonly backends: Readonly<Record<string, string>>
  /** Members of the file beside the backends. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Members of each backend beside name and URL. */
  readonly backend?: Readonly<Record<string, unknown>>
  readonly env?: Env
  /** A free one unless given. */
  readonly port?: number
  readonly resolve?: Resolve
  /** For questions to identity providers. */
  readonly providers?: Outbound
  readonly clock?: Clock
  readonly stores?: VmcpServerOptions['stores'] | undefined
  /** False: it does not wait until each backend has answered or failed once. */
  readonly isAttempted?: boolean
  /** How long clients wait for lists that never came; a second, or long where all backends have been asked. */
  readonly firstWaitMs?: number
}

/** A second is short on a busy machine, and lists of single callers are loaded while they wait. */
export const FIRST_WAIT_MS = 60_000

const BARE = { conflictResolution: 'prefixOnConflict' }

export function testConfig({ backends, config = {}, backend = {} }: TestVmcpOptions): VmcpConfig {
  const read = readVmcpDocument({
    name: 'joined',
    groupRef: 'group',
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline' },
    aggregation: BARE,
    backends: Object.entries(backends).map(([name, url]) => ({ name, url, ...backend })),
    ...config,
  })
  if (!read.ok) throw new Error(JSON.stringify(read.problems))
  return read.config
}

/** A whole virtual server, in this process, on a free port of loopback. Its backends have answered or failed once. */
export async function startTestVmcp(options: TestVmcpOptions): Promise<TestVmcp> {
  const lifecycle = createLifecycle()
  const log = new CollectingLog()
  const running = await startVmcp({
    ...{ config: testConfig(options), lifecycle, log, env: options.env ?? {} },
    ...{ host: '127.0.0.1', port: options.port ?? 0, sessionTtlMs: 60_000, version: '0.0.1', resolve: options.resolve },
    ...{ providers: options.providers, stores: options.stores, ...(options.clock && { clock: options.clock }) },
    firstWaitMs: options.firstWaitMs ?? (options.isAttempted === false ? undefined : FIRST_WAIT_MS),
  })
  await running.live.first
  if (options.isAttempted !== false) await running.offer.view.attempted
  return {
    ...running,
    logged: log.lines,
    async [Symbol.asyncDispose]() {
      await lifecycle.shutdown('the test is over')
    },
  }
}
