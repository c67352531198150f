import { done, isNotFound, type Outcome, pods, requeueAfter, retry } from '@thv/kube'
import type { ControllerEnv } from '../controller-env.ts'
import { claim } from '../workload/claim.ts'
import { ownedAndOrphans, ownedBy } from '../workload/owned-index.ts'
import { isOver } from '../workload/pod-state.ts'
import { workloadSelector } from '../workload/selector.ts'
import { isNamespaceTerminating, serverMessage } from '../workload/server-message.ts'
import { type Deployment, type DeploymentStatus, deployments, type ReplicaSet, replicaSets } from '../workload/workload-kinds.ts'
import { type Conditions, conditionOf, type NewCondition, withCondition } from './deployment-conditions.ts'
import { type DeploymentSettings, deploymentSettings, sizeOf, sum } from './deployment-settings.ts'
import { countedStatus, isComplete, progressCheckAfter, progressing, rolloutStatus, type StatusInput } from './deployment-status.ts'
import { cleanUpHistory } from './history-cleanup.ts'
import { createNewest, newSetName, sortSets, updateNewest } from './newest-replica-set.ts'
import { isScaled, type Sets, scaleSets } from './proportional-scale.ts'
import { type Resize, rollingStep } from './rolling-step.ts'
import { REVISION } from './rollout-annotations.ts'
import { scaleReplicaSet } from './scale-replica-set.ts'
import { writeDeployment } from './write-deployment.ts'

export interface DeploymentContext {
  readonly env: ControllerEnv
  readonly signal: AbortSignal
}

/** One step of the rollout, then the status. The changes that a step makes wake the next one. */
export async function reconcileDeployment(deployment: Deployment, context: DeploymentContext): Promise<Outcome> {
  const selector = workloadSelector(deployment.spec?.selector)
  if (selector === undefined) return done
  const { env, signal } = context
  const owned = await claim(ownedAndOrphans(env.caches.of(replicaSets).store, deployment), {
    client: env.client,
    owner: deployment,
    ownerType: deployments,
    type: replicaSets,
    matches: ({ metadata }) => selector.matches(metadata.labels),
    signal,
  })
  return await new Sync(deployment, owned, context).run()
}

/** State of one reconcile of a Deployment. The status is written once, at the end. */
class Sync {
  readonly #deployment: Deployment
  readonly #settings: DeploymentSettings
  readonly #context: DeploymentContext
  readonly #now: number
  #sets: Sets
  #conditions: Conditions
  #collisionCount: number | undefined
  #revision: string | undefined

  constructor(deployment: Deployment, sets: readonly ReplicaSet[], context: DeploymentContext) {
    this.#deployment = deployment
    this.#settings = deploymentSettings(deployment)
    this.#context = context
    this.#now = context.env.clock.now()
    this.#sets = sortSets(deployment, sets)
    this.#conditions = deployment.status?.conditions ?? []
    this.#collisionCount = deployment.status?.collisionCount
    this.#revision = deployment.metadata.annotations?.[REVISION]
  }

  async run(): Promise<Outcome> {
    if (this.#deployment.metadata.deletionTimestamp !== undefined) return await this.#write(countedStatus(this.#statusInput()))
    this.#notePause()
    await this.#updateNewest()
    if (this.#settings.paused || isScaled(this.#sets, this.#settings)) return await this.#scale()
    return this.#settings.recreate ? await this.#recreate() : await this.#roll()
  }

  async #roll(): Promise<Outcome> {
    const problem = await this.#ensureNewest()
    if (problem !== undefined) return problem
    const { newest, old } = this.#sets
    const steps = newest ? rollingStep({ newest, old }, this.#settings) : []
    await this.#resize(steps)
    return await this.#finish(steps.length > 0)
  }

  /** No pod of the new template before the last one of the old is gone. */
  async #recreate(): Promise<Outcome> {
    const steps = this.#sets.old.filter((set) => sizeOf(set) > 0).map((set) => ({ set, to: 0 }))
    await this.#resize(steps)
    if (steps.length > 0 || this.#hasOldPods()) return await this.#finish(true)
    const problem = await this.#ensureNewest()
    if (problem !== undefined) return problem
    const { newest } = this.#sets
    if (newest && sizeOf(newest) !== this.#settings.replicas) await this.#resize([{ set: newest, to: this.#settings.replicas }])
    return await this.#finish(false)
  }

  /** Paused, or told another number: sizes follow, the rollout does not go on. */
  async #scale(): Promise<Outcome> {
    await this.#resize(scaleSets(this.#deployment, this.#sets, this.#settings))
    if (this.#settings.paused) await this.#cleanUp()
    return await this.#write(countedStatus(this.#statusInput()))
  }

  async #finish(moved: boolean): Promise<Outcome> {
    if (!moved && isComplete(this.#deployment, this.#settings, this.#deployment.status ?? {})) await this.#cleanUp()
    return await this.#write(rolloutStatus(this.#statusInput()))
  }

  async #updateNewest(): Promise<void> {
    const { newest, old } = this.#sets
    if (newest === undefined) return
    const updated = await updateNewest(this.#deployment, { newest, old }, this.#writer())
    this.#sets = { newest: updated, old }
    this.#revision = updated.metadata.annotations?.[REVISION]
    const found = `Found new replica set "${updated.metadata.name}"`
    if (conditionOf(this.#conditions, 'Progressing') === undefined) this.#noteProgress(progressing('True', 'FoundNewReplicaSet', found))
  }

  /** Returns how the reconcile ends when there is none and it cannot be created. */
  async #ensureNewest(): Promise<Outcome | undefined> {
    const { newest, old } = this.#sets
    if (newest !== undefined) return undefined
    try {
      const result = await createNewest(this.#deployment, old, { ...this.#writer(), settings: this.#settings })
      if (result === 'collision') {
        this.#collisionCount = (this.#collisionCount ?? 0) + 1
        await this.#write({ ...this.#deployment.status, collisionCount: this.#collisionCount })
        return retry('the name of the new replica set is taken')
      }
      this.#sets = { newest: result.set, old }
      this.#revision = result.set.metadata.annotations?.[REVISION]
      if (result.created) this.#noteCreated(result.set)
      return undefined
    } catch (error) {
      if (isNamespaceTerminating(error) || isNotFound(error)) throw error
      return await this.#noteFailure(error)
    }
  }

  #noteCreated(set: ReplicaSet): void {
    const { name } = set.metadata
    const size = sizeOf(set)
    this.#noteProgress(progressing('True', 'NewReplicaSetCreated', `Created new replica set "${name}"`))
    if (size > 0) this.#event('Normal', 'ScalingReplicaSet', `Scaled up replica set ${name} from 0 to ${size}`)
  }

  async #noteFailure(error: unknown): Promise<Outcome> {
    const message = `Failed to create new replica set "${newSetName(this.#deployment)}": ${serverMessage(error)}`
    this.#noteProgress(progressing('False', 'ReplicaSetCreateError', message))
    this.#event('Warning', 'ReplicaSetCreateError', message)
    await this.#write({ ...this.#deployment.status, conditions: [...this.#conditions] })
    return retry(message)
  }

  /** A pause stops the clock of the deadline; what has timed out already stays so. */
  #notePause(): void {
    const reason = conditionOf(this.#conditions, 'Progressing')?.reason
    if (reason === 'ProgressDeadlineExceeded') return
    if (this.#settings.paused) this.#noteProgress(progressing('Unknown', 'DeploymentPaused', 'Deployment is paused'))
    else if (reason === 'DeploymentPaused') this.#noteProgress(progressing('Unknown', 'DeploymentResumed', 'Deployment is resumed'))
  }

  #noteProgress(condition: NewCondition): void {
    if (this.#settings.progressDeadlineSeconds === undefined) return
    this.#conditions = withCondition(this.#conditions, condition, this.#now)
  }

  async #resize(resizes: readonly (Resize & { sized?: boolean })[]): Promise<void> {
    const latest = new Map<string, ReplicaSet>()
    for (const { set, to, sized } of resizes) {
      const { name } = set.metadata
      const current = latest.get(name) ?? set
      if (sizeOf(current) === to && !sized) continue
      const { env, signal } = this.#context
      latest.set(name, await scaleReplicaSet(current, to, { env, signal, deployment: this.#deployment, settings: this.#settings }))
    }
    const { newest, old } = this.#sets
    const now = (set: ReplicaSet) => latest.get(set.metadata.name) ?? set
    this.#sets = { newest: newest && now(newest), old: old.map(now) }
  }

  #hasOldPods(): boolean {
    const { old } = this.#sets
    if (sum(old, ({ status }) => status?.replicas ?? 0) > 0) return true
    const { store } = this.#context.env.caches.of(pods)
    return old.some(({ metadata }) => ownedBy(store, metadata.uid ?? '').some((pod) => !isOver(pod)))
  }

  async #cleanUp(): Promise<void> {
    await cleanUpHistory(this.#sets.old, this.#settings, this.#writer())
  }

  async #write(status: DeploymentStatus): Promise<Outcome> {
    const { env, signal } = this.#context
    await writeDeployment(this.#deployment, { status, revision: this.#revision }, { client: env.client, signal })
    const after = progressCheckAfter(this.#deployment, this.#settings, { status, now: env.clock.now() })
    return after === undefined ? done : requeueAfter(after)
  }

  #event(type: 'Normal' | 'Warning', reason: string, note: string): void {
    this.#context.env.events.record(deployments, this.#deployment, { type, reason, note })
  }

  #writer() {
    return { client: this.#context.env.client, signal: this.#context.signal }
  }

  #statusInput(): StatusInput {
    return {
      deployment: this.#deployment,
      settings: this.#settings,
      sets: this.#sets,
      conditions: this.#conditions,
      collisionCount: this.#collisionCount,
      now: this.#now,
    }
  }
}
