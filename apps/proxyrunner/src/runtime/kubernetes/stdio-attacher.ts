import { type BackoffOptions, createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { Pod } from '@thv/kube'
import type { StdioConnection, StdioEnd } from '../runtime.ts'
import type { RuntimeLog } from '../runtime-log.ts'
import type { AttachPort } from './attach-port.ts'
import { choosePod, instanceOf, isOver, uidOf } from './pod-choice.ts'
import { MCP_CONTAINER } from './pod-template.ts'

export interface StdioAttacherOptions {
  readonly namespace: string
  readonly port: AttachPort
  readonly workload: { readonly pods: readonly Pod[]; onChange(listener: () => void): () => void }
  readonly log: RuntimeLog
  readonly clock: Clock
  readonly backoff?: BackoffOptions
  /** A connection that lived shorter counts as a failure. */
  readonly stableMs?: number
}

export interface StdioAttacher {
  /** Waits for a pod that is ready and not taken, as long as the signal lets it, and attaches to it. */
  open(signal: AbortSignal): Promise<StdioConnection>
  /** Detaches all. */
  close(): Promise<void>
}

/**
 * One connection per pod: two readers of one stdout would both get everything. When a pod is replaced its connection ends, and whoever
 * opens the next one gets the new pod, after a delay that grows when connections keep ending soon.
 */
export function createStdioAttacher(options: StdioAttacherOptions): StdioAttacher {
  const { namespace, port, workload, log, clock, stableMs = 30_000 } = options
  const backoff = createBackoff(options.backoff ?? { baseMs: 500, maxMs: 15_000 })
  const taken = new Set<string>()
  const open = new Set<StdioConnection>()
  let notBefore = 0

  function noteFailure(): void {
    notBefore = clock.monotonic() + backoff.next()
  }

  async function attach(pod: Pod, signal: AbortSignal): Promise<StdioConnection> {
    const uid = uidOf(pod)
    taken.add(uid)
    try {
      const connection = await port.attach({ namespace, pod: pod.metadata.name, container: MCP_CONTAINER }, signal)
      return follow(connection, pod)
    } catch (error) {
      taken.delete(uid)
      throw error
    }
  }

  /** The pod is watched too: a connection to a node that is gone can stay open for long. */
  function follow(connection: StdioConnection, pod: Pod): StdioConnection {
    const { name } = pod.metadata
    const startedAt = clock.monotonic()
    const gone = Promise.withResolvers<StdioEnd>()
    const look = () => {
      const current = workload.pods.find((other) => uidOf(other) === uidOf(pod))
      if (current === undefined || isOver(current)) gone.resolve({ message: `pod ${name} is gone` })
    }
    const leave = workload.onChange(look)
    const ended = Promise.race([connection.ended, gone.promise]).then(async (end) => {
      leave()
      open.delete(own)
      taken.delete(uidOf(pod))
      if (clock.monotonic() - startedAt >= stableMs) backoff.reset()
      else noteFailure()
      log.info(`detached from pod ${name}`, { reason: end.message })
      await connection.close().catch((error: unknown) => log.debug('detaching failed', { error: errorMessage(error) }))
      return end
    })
    const own: StdioConnection = {
      stdin: connection.stdin,
      stdout: connection.stdout,
      ended,
      instance: instanceOf(pod),
      async close() {
        await connection.close()
        gone.resolve({ message: `detached from pod ${name}` })
        await ended
      },
    }
    open.add(own)
    look()
    log.info(`attached to pod ${name}`)
    return own
  }

  return {
    async open(signal) {
      for (;;) {
        signal.throwIfAborted()
        const wait = notBefore - clock.monotonic()
        if (wait > 0) await clock.sleep(wait, signal)
        const pod = choosePod(workload.pods, taken)
        if (pod === undefined) {
          await nextChange(workload, signal)
          continue
        }
        try {
          return await attach(pod, signal)
        } catch (error) {
          signal.throwIfAborted()
          noteFailure()
          log.warn(`cannot attach to pod ${pod.metadata.name}`, { error: errorMessage(error) })
        }
      }
    },
    async close() {
      await Promise.all([...open].map((connection) => connection.close()))
    },
  }
}

function nextChange(workload: StdioAttacherOptions['workload'], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      leave()
      signal.removeEventListener('abort', onAbort)
      then()
    }
    const onAbort = () => settle(() => reject(signal.reason))
    const leave = workload.onChange(() => settle(resolve))
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
