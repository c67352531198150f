import { type BackoffOptions, createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { Pod } from '@thv/kube'
import type { ProgramLog } from '@thv/programs/program-log'
import type { StdioConnection } from '../runtime.ts'
import { AttachHistory } from './attach-history.ts'
import type { AttachEnd, AttachedStream, AttachPort } from './attach-port.ts'
import { choosePod, instanceOf, isOver, uidOf } from './pod-choice.ts'
import { MCP_CONTAINER } from './pod-template.ts'

export interface StdioAttacherOptions {
  readonly namespace: string
  readonly port: AttachPort
  readonly workload: { readonly pods: readonly Pod[]; onChange(listener: () => void): () => void }
  readonly log: ProgramLog
  readonly clock: Clock
  readonly backoff?: BackoffOptions
  /** A connection that lived shorter counts as a failure. */
  readonly stableMs?: number
  /** How long the status of a pod may lag behind. Default 5 s. */
  readonly statusLagMs?: number
  /** Where several runners share the pods: who of them may attach to which. */
  readonly leases?: PodLeases | undefined
  /** Ends a pod so that another one takes its place. Without it a process that cannot be used stays. */
  readonly replacePod?: (pod: Pod) => Promise<void>
}

/** One holder per pod, by its uid. */
export interface PodLeases {
  /** `held`: by another runner. `away`: the store does not answer. */
  acquire(uid: string, signal: AbortSignal): Promise<PodLease | 'held' | 'away'>
}

export interface PodLease {
  /** Resolves when another runner may attach. */
  readonly ended: Promise<void>
  release(): Promise<void>
}

export interface StdioAttacher {
  /** Waits for a pod that is ready and not taken, as long as the signal lets it, and attaches to it. */
  open(signal: AbortSignal): Promise<StdioConnection>
  /** Detaches all. */
  close(): Promise<void>
}

/**
 * One connection per pod, also among several runners: two readers of one stdout would both get everything, and two writers could tear each
 * other's lines apart. When a pod is replaced its connection ends, and the caller that
 * opens the next one gets the new pod, after a delay that grows when connections keep ending soon.
 */
export function createStdioAttacher(options: StdioAttacherOptions): StdioAttacher {
  const { namespace, port, workload, log, clock, stableMs = 30_000 } = options
  const backoff = createBackoff(options.backoff ?? { baseMs: 500, maxMs: 15_000 })
  const history = new AttachHistory({ clock, statusLagMs: options.statusLagMs ?? 5_000 })
  const taken = new Set<string>()
  /** Callers that wait for a pod. One that is being left becomes free without a change in the cluster. */
  const waiting = new Set<() => void>()
  /** Pods of other runners, and when to ask again. */
  const foreign = new Map<string, number>()
  const open = new Set<StdioConnection>()
  let notBefore = 0
  let closing = false

  function forgetAllBut(pods: readonly Pod[]): void {
    const uids = new Set(pods.map(uidOf))
    for (const uid of foreign.keys()) if (!uids.has(uid)) foreign.delete(uid)
  }

  function free(uid: string): void {
    taken.delete(uid)
    for (const wake of [...waiting]) wake()
  }

  function onChange(listener: () => void): () => void {
    const leave = workload.onChange(listener)
    waiting.add(listener)
    return () => {
      leave()
      waiting.delete(listener)
    }
  }

  function noteFailure(): void {
    notBefore = clock.monotonic() + backoff.next()
  }

  /** Undefined: the pod belongs to another runner. */
  async function attach(pod: Pod, signal: AbortSignal): Promise<StdioConnection | undefined> {
    const uid = uidOf(pod)
    taken.add(uid)
    let lease: PodLease | undefined
    try {
      const acquired = await options.leases?.acquire(uid, signal)
      if (typeof acquired === 'string') {
        noteForeign(pod, acquired)
        free(uid)
        return undefined
      }
      lease = acquired
      const connection = await port.attach({ namespace, pod: pod.metadata.name, container: MCP_CONTAINER }, signal)
      return follow(connection, pod, lease)
    } catch (error) {
      await lease?.release()
      free(uid)
      throw error
    }
  }

  /** The other runner speaks to its process, which may refuse a second handshake later. */
  function noteForeign(pod: Pod, why: 'held' | 'away'): void {
    if (why === 'held') history.usedElsewhere(instanceOf(pod))
    else if (!foreign.has(uidOf(pod))) log.warn(`cannot attach to pod ${pod.metadata.name} yet: Redis does not answer`)
    foreign.set(uidOf(pod), clock.monotonic() + FOREIGN_MS * (0.75 + Math.random() / 2))
  }

  function foreignMs(pod: Pod): number {
    return Math.max(0, (foreign.get(uidOf(pod)) ?? 0) - clock.monotonic())
  }

  /**
   * The pod is watched too: a connection to a node that is gone can stay open for long, and one that was made while the container was
   * being restarted carries the name of the wrong process.
   */
  function follow(connection: AttachedStream, pod: Pod, lease: PodLease | undefined): StdioConnection {
    const { name } = pod.metadata
    const instance = instanceOf(pod)
    const startedAt = clock.monotonic()
    const gone = Promise.withResolvers<AttachEnd>()
    const look = () => {
      const current = workload.pods.find((other) => uidOf(other) === uidOf(pod))
      if (current === undefined || isOver(current)) gone.resolve({ message: `pod ${name} is gone` })
      else if (instanceOf(current) !== instance) gone.resolve({ message: `the container of pod ${name} was restarted` })
    }
    const leave = workload.onChange(look)
    void lease?.ended.then(() => gone.resolve({ message: `pod ${name} is no longer leased to this proxy` }))
    const ended = Promise.race([connection.ended, gone.promise]).then(async (end) => {
      leave()
      open.delete(own)
      if (end.inOrder) history.endedInOrder(instance)
      if (clock.monotonic() - startedAt < stableMs) noteFailure()
      else {
        backoff.reset()
        history.wasUseful(instance)
      }
      log.info(`detached from pod ${name}`, { reason: end.message })
      await connection.close().catch((error: unknown) => log.debug('detaching failed', { error: errorMessage(error) }))
      await lease?.release()
      free(uidOf(pod))
      return end
    })
    const own: StdioConnection = {
      stdin: connection.stdin,
      stdout: connection.stdout,
      ended,
      instance,
      async close() {
        const isGivenUp = open.has(own) && !closing
        gone.resolve({ message: `detached from pod ${name}` })
        await connection.close()
        await ended
        if (isGivenUp && history.gaveUp(instance)) await replace(pod)
      },
    }
    open.add(own)
    look()
    log.info(`attached to pod ${name}`)
    return own
  }

  /** Once per process, and only one that was there before this runner: see AttachHistory. */
  async function replace(pod: Pod): Promise<void> {
    const { name } = pod.metadata
    if (options.replacePod === undefined) return
    log.warn(`pod ${name} was in use before this runner started and does not take another handshake: it is replaced`)
    try {
      await options.replacePod(pod)
    } catch (error) {
      log.warn(`pod ${name} could not be replaced; delete it by hand`, { error: errorMessage(error) })
    }
  }

  return {
    async open(signal) {
      for (;;) {
        signal.throwIfAborted()
        const wait = notBefore - clock.monotonic()
        if (wait > 0) await clock.sleep(wait, signal)
        history.look(workload.pods)
        forgetAllBut(workload.pods)
        const waitMs = (candidate: Pod) => Math.max(history.doubtMs(candidate), foreignMs(candidate))
        const pod = choosePod(
          workload.pods.filter((candidate) => waitMs(candidate) === 0),
          taken,
        )
        if (pod === undefined) {
          const waits = workload.pods.map(waitMs).filter((ms) => ms > 0)
          await nextChange({ onChange }, signal, { clock, limitMs: Math.min(...waits) })
          continue
        }
        try {
          const connection = await attach(pod, signal)
          if (connection !== undefined) return connection
        } catch (error) {
          signal.throwIfAborted()
          noteFailure()
          log.warn(`cannot attach to pod ${pod.metadata.name}`, { error: errorMessage(error) })
        }
      }
    },
    async close() {
      closing = true
      await Promise.all([...open].map((connection) => connection.close()))
    },
  }
}

/** About how long a pod of another runner is left alone before it is asked for again. */
const FOREIGN_MS = 2_000

/** A limit of Infinity is none. */
function nextChange(
  { onChange }: Pick<StdioAttacherOptions['workload'], 'onChange'>,
  signal: AbortSignal,
  { clock, limitMs }: { clock: Clock; limitMs: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      leave()
      timer?.cancel()
      signal.removeEventListener('abort', onAbort)
      then()
    }
    const onAbort = () => settle(() => reject(signal.reason))
    const leave = onChange(() => settle(resolve))
    const timer = Number.isFinite(limitMs) ? clock.setTimer(limitMs, () => settle(resolve)) : undefined
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
