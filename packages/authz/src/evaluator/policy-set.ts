import type { CompiledPolicy } from './compile-policy.ts'
import type { EntityStore } from './entities.ts'
import type { Env } from './environment.ts'
import { Failure, UNKNOWN } from './value.ts'

export interface PolicyFailure {
  readonly policy: CompiledPolicy
  readonly message: string
}

export interface Decision {
  readonly allowed: boolean
  /** The policies that decided: permits when allowed, forbids when one of them applied, none when nothing permitted. */
  readonly policies: readonly CompiledPolicy[]
  /** Policies that could not be evaluated. One is enough to deny. */
  readonly failures: readonly PolicyFailure[]
}

interface Bucket {
  /** By the key of the resource that the scope names. */
  readonly byResource: Map<string, CompiledPolicy[]>
  readonly general: CompiledPolicy[]
}

/**
 * Policies, indexed by action and resource so that a decision looks only at those whose scope can match. Immutable: a changed policy
 * means a new set.
 */
export class PolicySet {
  readonly policies: readonly CompiledPolicy[]
  readonly entities: EntityStore
  readonly #byAction = new Map<string, Bucket>()
  readonly #anyAction: Bucket = emptyBucket()

  constructor(policies: readonly CompiledPolicy[], entities: EntityStore) {
    this.policies = policies
    this.entities = entities
    for (const policy of policies) {
      if (policy.actions === undefined) add(this.#anyAction, policy)
      else for (const key of this.#withDescendants(policy.actions)) add(this.#bucketOf(key), policy)
    }
  }

  /** Denied unless permitted; a forbid wins; a policy that fails denies. */
  decide(env: Env): Decision {
    const permits: CompiledPolicy[] = []
    const forbids: CompiledPolicy[] = []
    const failures: PolicyFailure[] = []
    for (const policies of this.#candidates(env)) {
      if (policies === undefined) continue
      for (const policy of policies) {
        const outcome = policy.evaluate(env)
        if (outcome === false) continue
        if (outcome instanceof Failure) failures.push({ policy, message: outcome.message })
        // An unknown here is a mistake of the caller: it must never open anything.
        else if (outcome === UNKNOWN) failures.push({ policy, message: 'depends on arguments that are not known' })
        else if (policy.effect === 'permit') permits.push(policy)
        else forbids.push(policy)
      }
    }
    if (failures.length > 0 || forbids.length > 0) return { allowed: false, policies: forbids, failures }
    return { allowed: permits.length > 0, policies: permits, failures }
  }

  /** Whether some arguments could be permitted. The parts of `env` that hold arguments say so by their unknown prefix. */
  mayAllow(env: Env): boolean {
    let permitted = false
    for (const policies of this.#candidates(env)) {
      if (policies === undefined) continue
      for (const policy of policies) {
        const outcome = policy.evaluate(env)
        if (outcome === false) continue
        if (outcome instanceof Failure) return false
        if (policy.effect === 'permit') permitted = true
        else if (outcome === true) return false
      }
    }
    return permitted
  }

  /** Whether a forbid applies, for actions that need no permit. A policy that fails counts as one. */
  forbids(env: Env): readonly CompiledPolicy[] {
    const found: CompiledPolicy[] = []
    for (const policies of this.#candidates(env))
      for (const policy of policies ?? []) if (policy.effect === 'forbid' && policy.evaluate(env) !== false) found.push(policy)
    return found
  }

  #candidates({ action, resource }: Env): readonly (readonly CompiledPolicy[] | undefined)[] {
    const bucket = this.#byAction.get(action.key)
    return [bucket?.byResource.get(resource.key), bucket?.general, this.#anyAction.byResource.get(resource.key), this.#anyAction.general]
  }

  #withDescendants(keys: readonly string[]): ReadonlySet<string> {
    return new Set(keys.flatMap((key) => [key, ...this.entities.descendantsOf(key)]))
  }

  #bucketOf(key: string): Bucket {
    const bucket = this.#byAction.get(key) ?? emptyBucket()
    this.#byAction.set(key, bucket)
    return bucket
  }
}

function emptyBucket(): Bucket {
  return { byResource: new Map(), general: [] }
}

function add({ byResource, general }: Bucket, policy: CompiledPolicy): void {
  if (policy.resource === undefined) general.push(policy)
  else byResource.set(policy.resource, [...(byResource.get(policy.resource) ?? []), policy])
}
