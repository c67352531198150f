import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube'
import type { Log } from '@thv/telemetry/log'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import type { Discovered } from './discovered-backends.ts'
import type { Env } from './forwarded-headers.ts'
import { GroupWatch } from './group-watch.ts'

export interface DiscoverOnceOptions {
  readonly client: KubeClient
  readonly namespace: string
  readonly env: Env
  readonly clock: Clock
  readonly log: Log
  /** Time limit; 30 seconds unless given. */
  readonly limitMs?: number
}

const LIMIT_MS = 30_000

/** The members of the group as they are now, found as a server finds them. Rejects where the cluster does not answer. */
export async function discoverOnce(config: VmcpConfig, options: DiscoverOnceOptions): Promise<Discovered> {
  const { clock, limitMs = LIMIT_MS } = options
  const found = Promise.withResolvers<Discovered>()
  const resolve = () => {
    try {
      const discovered = watch.resolve(config)
      if (discovered !== undefined) found.resolve(discovered)
    } catch (error) {
      found.reject(error)
    }
  }
  const watch = new GroupWatch({ ...options, onChange: resolve })
  try {
    return await withTimeLimit({ clock, timeoutMs: limitMs, what: 'listing them', signals: [] }, () => found.promise)
  } catch (error) {
    if (error instanceof ThvError && error.code === 'timeout')
      throw new ThvError('usage', `the members of group ${config.groupRef} could not be listed: ${errorMessage(error)}`)
    throw error
  } finally {
    await watch.close()
  }
}
