import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { jsonEqual } from '@thv/kernel/json'
import type { KubeClient } from '@thv/kube/client/client'
import { isConflict, isNotFound } from '@thv/kube/client/kube-api-error'
import type { StatusCondition } from '@thv/kube/objects/builtin-kinds'
import { pods } from '@thv/kube/objects/resource-types'
import type { NodePod } from './pod-spec.ts'
import type { NodePodStatus } from './pod-status.ts'

export interface PodStatusWriterOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly signal: AbortSignal
  /** The status as it should be now, and the pod that it belongs to. */
  readonly read: () => { readonly pod: NodePod; readonly status: NodePodStatus }
  readonly onError: (error: unknown) => void
}

/** Brings a pod's status to the server: one call at a time, always the latest, again until it is taken. */
export class PodStatusWriter {
  readonly #options: PodStatusWriterOptions
  #wanted = false
  #gone = false
  #written: NodePodStatus | undefined
  #working: Promise<void> | undefined

  constructor(options: PodStatusWriterOptions) {
    this.#options = options
  }

  /** Never waits, never throws. */
  schedule(): void {
    this.#wanted = true
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined
      if (this.#wanted && !this.#gone && !this.#options.signal.aborted) this.schedule() // it came when the work was just over
    })
  }

  /** Resolves when what was true at the call is written, the pod is gone, or the signal aborts. */
  async flush(): Promise<void> {
    this.schedule()
    while (this.#working) await this.#working
  }

  async #work(): Promise<void> {
    const { clock, signal, onError } = this.#options
    const backoff = createBackoff({ baseMs: 100, maxMs: 10_000 })
    await Promise.resolve() // several changes of one moment make one write
    while (this.#wanted && !this.#gone && !signal.aborted) {
      this.#wanted = false
      try {
        await this.#write()
        backoff.reset()
      } catch (error) {
        if (signal.aborted) return
        if (isNotFound(error)) {
          this.#gone = true
          return
        }
        if (!isConflict(error)) onError(error)
        this.#wanted = true
        await clock.sleep(backoff.next(), signal).catch(() => undefined) // the loop sees the signal
      }
    }
  }

  async #write(): Promise<void> {
    const { client, signal, read } = this.#options
    const { pod, status } = read()
    // A transition keeps its time although the cached pod may be older than our last write.
    const dated = { ...status, conditions: status.conditions.map((one) => keepTime(one, this.#written?.conditions)) }
    if (this.#written !== undefined) dated.startTime = this.#written.startTime
    if (jsonEqual(dated, this.#written)) return
    const { name, namespace, uid } = pod.metadata
    const conditions = dated.conditions.map((one) => ({ ...one, reason: one.reason ?? null, message: one.message ?? null }))
    const body = { metadata: { uid }, status: { ...dated, conditions } }
    await client.patch(pods, { namespace, name }, { kind: 'strategic', body }, { subresource: 'status', signal })
    this.#written = dated
  }
}

function keepTime(one: StatusCondition, before: readonly StatusCondition[] | undefined): StatusCondition {
  const old = before?.find(({ type }) => type === one.type)
  return old?.status === one.status && old.lastTransitionTime !== undefined ? { ...one, lastTransitionTime: old.lastTransitionTime } : one
}
