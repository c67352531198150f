import type { Clock } from '@thv/kernel/clock'
import type { PodNetwork } from '../network/pod-network.ts'
import type { NodePod } from './pod-spec.ts'

const ALLOW_UNSAFE_BIND = 'toolhive.stacklok.dev/allow-unsafe-bind'
export const UNSAFE_BIND = 'UnsafeBind'

/** Why a container was ended. */
export interface Bind {
  readonly reason: typeof UNSAFE_BIND
  readonly message: string
}

export interface BindWatchInput {
  readonly network: PodNetwork
  readonly pod: NodePod
  readonly groupId: number
  readonly address: string
  readonly clock: Clock
  readonly intervalMs: number
  readonly signal: AbortSignal
  readonly onUnsafe: (bind: Bind) => void
  readonly onError: (error: unknown) => void
}

const FIRST_LOOKS_MS = [1_000, 4_000]

/**
 * A server that listens on all addresses is open to the network past its proxy. Looks shortly after the start, when asked, and now and
 * then. `check` is false when something unsafe was found.
 */
export function watchBinds(input: BindWatchInput): { check: () => Promise<boolean>; done: Promise<void> } {
  const { network, pod, groupId, address, clock, intervalMs, signal, onUnsafe, onError } = input
  const isAllowed = allowsUnsafeBind(pod)
  let told = false

  async function check(): Promise<boolean> {
    if (isAllowed) return true
    const binds = await network.unsafeBinds(groupId, address)
    if (binds.length === 0 || signal.aborted) return true
    if (!told) onUnsafe({ reason: UNSAFE_BIND, message: messageOf(binds) })
    told = true
    return false
  }

  async function watch(): Promise<void> {
    for (let look = 0; !signal.aborted && !told; look++) {
      await clock.sleep(Math.min(intervalMs, FIRST_LOOKS_MS[look] ?? intervalMs), signal)
      await check().catch(onError)
    }
  }

  const done = watch().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  return { check, done }
}

export function allowsUnsafeBind({ metadata }: NodePod): boolean {
  return metadata.annotations?.[ALLOW_UNSAFE_BIND] === 'true'
}

function messageOf(binds: readonly string[]): string {
  return `The program listens on ${binds.join(', ')}, which is open to the network past its proxy. Make it listen on 127.0.0.1, or allow this with the annotation ${ALLOW_UNSAFE_BIND}: "true" on the pod.`
}
