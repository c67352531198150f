import { join } from 'node:path'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { installBindGuard } from './bind-guard.ts'
import type { ClaimedNetwork } from './claim-network.ts'
import { parseIpv4Range } from './ipv4-range.ts'
import { createPodAddresses } from './pod-addresses.ts'
import { listeningPorts, unsafeBinds } from './unsafe-binds.ts'

/** Where a pod's processes live on this machine. */
export interface PodPlace {
  /** The pod's own address; `127.0.0.1` for every pod in mode `single`. */
  readonly address: string
  /** For `status.hostIP`. */
  readonly hostAddress: string
  /**
   * For the environment of every container: the bind guard, and the resolver of cluster names for our own programs. Join it with
   * `withBindGuard`, which keeps the NODE_OPTIONS and PYTHONPATH that a container has of its own.
   */
  readonly env: Readonly<Record<string, string>>
}

export interface PodNetwork {
  /** The same place for the same uid until `removePod`. Rejects with `network_unavailable` when no address is left. */
  addPod(uid: string, options?: AddPodOptions): Promise<PodPlace>
  removePod(uid: string): void
  /**
   * Sockets of a process group, and of all that its processes started, which listen where they must not, e.g. `0.0.0.0:3001`.
   * Empty where the system does not tell (no /proc and no lsof).
   */
  unsafeBinds(groupId: number, address: string): Promise<readonly string[]>
  /** Ports that the same processes listen on. */
  listeningPorts(groupId: number, address: string): Promise<readonly number[]>
}

export interface AddPodOptions {
  /** Namespace of short names (`web` instead of `web.team`). */
  readonly namespace?: string
}

export interface PodNetworkOptions {
  readonly claimed: ClaimedNetwork
  /** The guard's files go below it. */
  readonly folder: string
  /** Value of THV_RESOLVER, see `startResolver`. */
  readonly resolver?: string | undefined
  readonly clock?: Clock
}

const HOST_ADDRESS = '127.0.0.1'

export async function createPodNetwork(options: PodNetworkOptions): Promise<PodNetwork> {
  const { claimed, folder, resolver, clock = systemClock } = options
  const guard = await installBindGuard(join(folder, 'bind-guard'))
  const addresses = createPodAddresses(parseIpv4Range(claimed.podRange), clock)
  return {
    async addPod(uid, { namespace } = {}) {
      const address = claimed.mode === 'single' ? HOST_ADDRESS : addresses.take(uid)
      const env = {
        ...guard.envFor(address),
        ...(resolver === undefined ? {} : { THV_RESOLVER: resolver }),
        ...(resolver === undefined || namespace === undefined ? {} : { THV_RESOLVER_NAMESPACE: namespace }),
      }
      return { address, hostAddress: HOST_ADDRESS, env }
    },
    removePod: (uid) => addresses.release(uid),
    unsafeBinds: (groupId, address) => unsafeBinds(groupId, claimed.mode === 'single' ? undefined : address),
    listeningPorts: (groupId, address) => listeningPorts(groupId, claimed.mode === 'single' ? undefined : address),
  }
}
