import type { Clock } from '@thv/kernel/clock'
import type { PodNetwork } from '../network/pod-network.ts'
import type { ContainerSpec } from './pod-spec.ts'

export interface PortWatchInput {
  readonly network: Pick<PodNetwork, 'listeningPorts'>
  readonly spec: Pick<ContainerSpec, 'ports'>
  readonly groupId: number
  readonly address: string
  readonly clock: Clock
  /** Between looks, after the first ones. */
  readonly intervalMs: number
  readonly signal: AbortSignal
  /** The ports that are listened on instead of the declared ones; none once a declared one is. Called after each change. */
  readonly onOtherPorts: (ports: readonly number[]) => void
  readonly onError: (error: unknown) => void
}

const FIRST_LOOK_MS = 2_000
const FIRST_LOOKS = 15

/** Finds out where a server listens that does not listen where its spec says. Ends when it does, or when the signal aborts. */
export async function watchPorts(input: PortWatchInput): Promise<void> {
  const { network, spec, groupId, address, clock, intervalMs, signal, onOtherPorts, onError } = input
  const declared = new Set(spec.ports?.map(({ containerPort }) => containerPort))
  let told = ''
  for (let look = 0; declared.size > 0; look++) {
    await clock.sleep(look < FIRST_LOOKS ? Math.min(FIRST_LOOK_MS, intervalMs) : intervalMs, signal).catch(() => undefined)
    if (signal.aborted) return
    const ports = await network.listeningPorts(groupId, address).catch((error: unknown) => {
      onError(error)
      return []
    })
    if (signal.aborted) return
    const isRight = ports.some((port) => declared.has(port))
    const others = isRight ? [] : ports
    if (others.join() !== told) onOtherPorts(others)
    told = others.join()
    if (isRight) return
  }
}
