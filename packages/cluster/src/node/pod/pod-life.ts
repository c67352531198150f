import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errorMessage } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import { pods } from '@thv/kube/objects/resource-types'
import type { PodPlace } from '../network/pod-network.ts'
import { PodVolumes } from '../volumes/pod-volumes.ts'
import { ContainerLife } from './container-life.ts'
import { deletePod } from './delete-pod.ts'
import type { NodeEnv } from './node-env.ts'
import { ObjectWaiter } from './object-waiter.ts'
import type { PodContext } from './pod-context.ts'
import { graceSecondsOf, type NodePod } from './pod-spec.ts'
import { podStatus } from './pod-status.ts'
import { PodStatusWriter } from './pod-status-writer.ts'
import { VolumeKeeper } from './volume-keeper.ts'

/** Why a pod is ended: its object is being deleted, is gone already, took too long, or the node stops. */
type End = 'deleted' | 'vanished' | 'failed' | 'stopped'

/** One pod of this node, from the moment it is seen until its processes and its object are gone. */
export class PodLife {
  /** Never rejects. Nothing of the pod is left on this machine but, with `stop`, its files. */
  readonly ended: Promise<void>
  readonly #env: NodeEnv
  readonly #folder: string
  readonly #status: PodStatusWriter
  readonly #stopStatus = new AbortController()
  /** Aborts when the containers must end; the graces below say how fast. */
  readonly #over = new AbortController()
  /** Aborts when nothing must be waited for any more, such as the deletion of a pod that has ended by itself. */
  readonly #close = new AbortController()
  /** Aborts when the object is no longer ours to delete. */
  readonly #abandon = new AbortController()
  readonly #waiter: ObjectWaiter
  #pod: NodePod
  #place: PodPlace | undefined
  #keeper: VolumeKeeper | undefined
  #containers: ContainerLife[] = []
  #isPrepared = false
  #failure: { reason: string; message: string } | undefined
  #end: End | undefined
  #graceMs = 0

  constructor(pod: NodePod, env: NodeEnv) {
    this.#pod = pod
    this.#env = env
    this.#waiter = new ObjectWaiter(env.clock)
    this.#folder = join(env.folder, 'pods', pod.metadata.uid)
    this.#status = new PodStatusWriter({
      client: env.client,
      clock: env.clock,
      signal: this.#stopStatus.signal,
      read: () => ({ pod: this.#pod, status: this.#readStatus() }),
      onError: (error) => env.onError(error, this.#pod.metadata),
    })
    this.ended = this.#run().catch((error: unknown) => env.onError(error, this.#pod.metadata))
    this.update(pod)
  }

  get pod(): NodePod {
    return this.#pod
  }

  container(name: string): ContainerLife | undefined {
    return this.#containers.find(({ spec }) => spec.name === name)
  }

  /** The object has changed. */
  update(pod: NodePod): void {
    const old = this.#pod
    this.#pod = pod
    const { labels, annotations, deletionTimestamp } = pod.metadata
    if (!jsonEqual([labels, annotations], [old.metadata.labels, old.metadata.annotations])) this.objectsChanged()
    if (deletionTimestamp !== undefined) this.#finish('deleted', graceSecondsOf(pod) * 1_000)
    if (!jsonEqual(pod.status?.conditions, old.status?.conditions) && (pod.spec.readinessGates?.length ?? 0) > 0) this.#status.schedule()
  }

  /** The object is gone. */
  vanish(): void {
    this.#stopStatus.abort() // another pod may have the name by now, and would reject our status each time
    this.#finish('vanished', Math.min(VANISHED_GRACE_MS, graceSecondsOf(this.#pod) * 1_000))
  }

  /** Ends the processes and leaves the object alone. */
  stop(): Promise<void> {
    this.#stopStatus.abort()
    this.#finish('stopped', Math.min(this.#env.timings.stopGrace, graceSecondsOf(this.#pod) * 1_000))
    return this.ended
  }

  refersTo(kind: 'configMap' | 'secret', name: string): boolean {
    const { containers, initContainers = [], volumes = [] } = this.#pod.spec
    // Names are searched for in the text: one look too many costs nothing.
    return JSON.stringify([kind, containers, initContainers, volumes]).includes(JSON.stringify(name))
  }

  /** Something that the pod may refer to has changed. */
  objectsChanged(): void {
    this.#waiter.wake()
    this.#keeper?.refresh()
  }

  async #run(): Promise<void> {
    await Promise.resolve() // the caller has its reference first
    const { signal } = this.#over
    const wasOver = isOver(this.#pod.status?.phase)
    if (!wasOver && !signal.aborted) {
      const deadline = this.#watchDeadline()
      const living = this.#live(signal).catch((error: unknown) => {
        if (!signal.aborted) this.#fail({ reason: 'NodeError', message: errorMessage(error) }, error)
      })
      await Promise.race([living, once(signal)])
      deadline?.cancel()
      await this.#endContainers()
      await living
    }
    await this.#keeper?.close()
    await this.#settle(wasOver)
    await this.#leave().catch((error: unknown) => this.#env.onError(error, this.#pod.metadata))
  }

  /** Returns when all containers have ended by themselves. */
  async #live(signal: AbortSignal): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    this.#place = await this.#addToNetwork(signal)
    const context = this.#context(this.#place)
    this.#keeper = new VolumeKeeper(context, signal)
    const { initContainers = [], containers } = this.#pod.spec
    const inits = initContainers.map((spec) => new ContainerLife(spec, true, context))
    const mains = containers.map((spec) => new ContainerLife(spec, false, context))
    this.#containers = [...inits, ...mains]
    if (this.#cannotGoOn()) return
    this.#status.schedule()
    await this.#keeper.mount()
    this.#isPrepared = true
    this.#status.schedule()
    for (const init of inits) {
      if (init.role === 'sidecar') {
        await init.started()
      } else {
        await init.run()
        if (init.failed) return
      }
      signal.throwIfAborted()
    }
    await Promise.all(mains.map((main) => main.run()))
  }

  /** A pod that is never restarted, and whose containers ended with the node. */
  #cannotGoOn(): boolean {
    if (this.#pod.spec.restartPolicy !== 'Never') return false
    const lost = this.#containers.filter(({ record }) => record.lastState.terminated?.reason === 'ContainerStatusUnknown')
    for (const { record } of lost) {
      const { terminated } = record.lastState
      if (terminated) record.state = { terminated }
      record.lastState = {}
    }
    if (lost.length > 0) this.#failure = { reason: 'NodeShutdown', message: 'Containers of the pod were running when the node ended.' }
    return lost.length > 0
  }

  #context(place: PodPlace): PodContext {
    const self = this
    const { client, clock } = this.#env
    return {
      env: this.#env,
      get pod() {
        return self.#pod
      },
      place,
      volumes: new PodVolumes({ folder: this.#folder, client, clock, place }),
      folder: this.#folder,
      changed: () => this.#status.schedule(),
      event: (type, reason, note) => this.#event(type, reason, note),
      waitForChange: (ms, signal) => this.#waiter.wait(ms, signal),
    }
  }

  async #addToNetwork(signal: AbortSignal): Promise<PodPlace> {
    const { uid, namespace } = this.#pod.metadata
    for (;;) {
      try {
        const place = await this.#env.network.addPod(uid, { namespace })
        signal.throwIfAborted()
        return place
      } catch (error) {
        signal.throwIfAborted()
        this.#event('Warning', 'FailedCreatePodSandBox', `Failed to create pod sandbox: ${errorMessage(error)}`)
        await this.#waiter.wait(this.#env.timings.retry, signal)
      }
    }
  }

  #watchDeadline(): { cancel(): void } | undefined {
    const { activeDeadlineSeconds } = this.#pod.spec
    if (activeDeadlineSeconds === undefined) return undefined
    const began = Date.parse(String(this.#pod.status?.['startTime'] ?? ''))
    const spent = Number.isNaN(began) ? 0 : this.#env.clock.now() - began
    return this.#env.clock.setTimer(activeDeadlineSeconds * 1_000 - spent, () => {
      this.#event('Normal', 'DeadlineExceeded', DEADLINE_TEXT)
      this.#fail({ reason: 'DeadlineExceeded', message: DEADLINE_TEXT })
    })
  }

  #fail(failure: { reason: string; message: string }, error?: unknown): void {
    this.#failure ??= failure
    if (error !== undefined) this.#env.onError(error, this.#pod.metadata)
    this.#finish('failed', (this.#pod.spec.terminationGracePeriodSeconds ?? 30) * 1_000)
  }

  /** Stronger reasons win over weaker ones; a shorter grace is passed on. */
  #finish(end: End, graceMs: number): void {
    const isFirst = this.#end === undefined
    const isSooner = graceMs < this.#graceMs
    if (isFirst || STRENGTH[end] > STRENGTH[this.#end ?? 'failed']) this.#end = end
    this.#graceMs = isFirst ? graceMs : Math.min(this.#graceMs, graceMs)
    if (end !== 'failed') this.#close.abort()
    if (end === 'vanished' || end === 'stopped') this.#abandon.abort()
    if (isFirst) this.#over.abort()
    else if (isSooner) void Promise.all(this.#containers.map((container) => container.terminate(graceMs)))
  }

  /** Sidecars go last, in reverse, within the same grace. */
  async #endContainers(): Promise<void> {
    const { clock } = this.#env
    const due = clock.monotonic() + this.#graceMs
    const others = this.#containers.filter(({ role }) => role !== 'sidecar')
    await Promise.all(others.map((container) => container.terminate(this.#graceMs)))
    for (const sidecar of this.#containers.filter(({ role }) => role === 'sidecar').reverse()) {
      await sidecar.terminate(this.#end === undefined ? this.#sidecarGrace() : Math.max(0, due - clock.monotonic()))
    }
  }

  #sidecarGrace(): number {
    return (this.#pod.spec.terminationGracePeriodSeconds ?? 30) * 1_000
  }

  /** Tells the server how it ended; a pod that ended by itself waits for its deletion. */
  async #settle(wasOver: boolean): Promise<void> {
    // Of a pod that never lived here there is nothing to tell.
    if (this.#end !== 'vanished' && this.#end !== 'stopped' && !wasOver && this.#containers.length > 0) {
      this.#isPrepared = false
      await this.#tellTheEnd()
    }
    if (!this.#close.signal.aborted) await once(this.#close.signal)
    this.#stopStatus.abort()
    if (this.#end === 'deleted') await deletePod(this.#pod, this.#env, this.#abandon.signal)
  }

  /** A status that is refused again and again does not keep a pod that somebody wants to be gone. */
  async #tellTheEnd(): Promise<void> {
    const { clock, timings } = this.#env
    const told = new AbortController()
    const enough = once(this.#close.signal).then(() => clock.sleep(timings.lastStatus, told.signal))
    await Promise.race([this.#status.flush(), enough.catch(() => undefined)]) // rejects after its abort
    told.abort()
  }

  async #leave(): Promise<void> {
    this.#env.network.removePod(this.#pod.metadata.uid)
    if (this.#end === 'stopped') return
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    await rm(join(this.#env.folder, 'logs', this.#pod.metadata.uid), { recursive: true, force: true })
  }

  #readStatus() {
    return podStatus({
      pod: this.#pod,
      place: this.#place,
      containers: this.#containers,
      isPrepared: this.#isPrepared,
      failure: this.#failure,
      now: this.#env.clock.now(),
    })
  }

  #event(type: 'Normal' | 'Warning', reason: string, note: string): void {
    this.#env.events.record(pods, this.#pod, { type, reason, note, action: reason })
  }
}

const VANISHED_GRACE_MS = 2_000
const DEADLINE_TEXT = 'Pod was active on the node longer than the specified deadline'
const STRENGTH: Readonly<Record<End, number>> = { failed: 0, deleted: 1, vanished: 2, stopped: 3 }

export function isOver(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed'
}

function once(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
