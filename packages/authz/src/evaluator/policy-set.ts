import type { Steps } from '@thv/kernel/steps'
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

const ADDED_PER_STEP = 1_000
const UNKNOWN_FACTS = 'depends on facts that are not known'

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

  private constructor(policies: readonly CompiledPolicy[], entities: EntityStore) {
    this.policies = policies
    this.entities = entities
  }

  /** Yields now and then: a policy may stand for thousands of actions. */
  static *of(policies: readonly CompiledPolicy[], entities: EntityStore): Steps<PolicySet> {
    const set = new PolicySet(policies, entities)
    let added = 0
    for (const policy of policies) {
      added += set.#add(policy)
      if (added < ADDED_PER_STEP) continue
      added = 0
      yield
    }
    return set
  }

  /**
   * Denied unless permitted; a forbid wins; a policy that fails denies. What is not known opens nothing: a permit that depends on it does
   * not count, and a forbid that does denies.
   */
  decide(env: Env): Decision {
    const permits: CompiledPolicy[] = []
    const forbids: CompiledPolicy[] = []
    const failures: PolicyFailure[] = []
    for (const policies of this.#candidates(env)) {
      if (policies === undefined) continue
      for (const policy of policies) {
        if (lacksScopes(policy, env)) continue
        const outcome = policy.evaluate(env)
        if (outcome === false) continue
        if (outcome instanceof Failure) failures.push({ policy, message: outcome.message })
        else if (policy.effect === 'forbid') {
          if (outcome === UNKNOWN) failures.push({ policy, message: UNKNOWN_FACTS })
          else forbids.push(policy)
        } else if (outcome !== UNKNOWN) permits.push(policy)
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
        if (lacksScopes(policy, env)) continue
        const outcome = policy.evaluate(env)
        if (outcome === false) continue
        if (outcome instanceof Failure) return false
        if (policy.effect === 'permit') permitted = true
        else if (outcome === true) return false
      }
    }
    return permitted
  }

  /** Allowed unless a forbid applies or fails, for actions that need no permit. */
  decideForbids(env: Env): Decision {
    const policies: CompiledPolicy[] = []
    const failures: PolicyFailure[] = []
    for (const candidates of this.#candidates(env)) {
      if (candidates === undefined) continue
      for (const policy of candidates) {
        if (policy.effect !== 'forbid') continue
        const outcome = policy.evaluate(env)
        if (outcome === false) continue
        if (outcome === true) policies.push(policy)
        else failures.push({ policy, message: outcome instanceof Failure ? outcome.message : UNKNOWN_FACTS })
      }
    }
    return { allowed: policies.length === 0 && failures.length === 0, policies, failures }
  }

  /** To how many places of the index. */
  #add(policy: CompiledPolicy): number {
    if (policy.actions === undefined) {
      add(this.#anyAction, policy)
      return 1
    }
    const keys = this.#withDescendants(policy.actions)
    for (const key of keys) add(this.#bucketOf(key), policy)
    return keys.size
  }

  #candidates({ action, resource }: Env): readonly (readonly CompiledPolicy[] | undefined)[] {
    const bucket = this.#byAction.get(action.key)
    return [bucket?.byResource.get(resource.key), bucket?.general, this.#anyAction.byResource.get(resource.key), this.#anyAction.general]
  }

  #withDescendants(keys: readonly string[]): ReadonlySet<string> {
    return new Set(keys.flatMap((key) => [key, ...this.entities.actionsBelow(key)]))
  }

  #bucketOf(key: string): Bucket {
    const bucket = this.#byAction.get(key) ?? emptyBucket()
    this.#byAction.set(key, bucket)
    return bucket
  }
}

function lacksScopes({ scopes }: CompiledPolicy, { scopes: held }: Env): boolean {
  if (scopes.length === 0) return false
  if (held === undefined) return true
  for (const scope of scopes) if (!held.has(scope)) return true
  return false
}

function emptyBucket(): Bucket {
  return { byResource: new Map(), general: [] }
}

function add({ byResource, general }: Bucket, policy: CompiledPolicy): void {
  if (policy.resource === undefined) general.push(policy)
  else {
    const known = byResource.get(policy.resource)
    if (known === undefined) byResource.set(policy.resource, [policy])
    else known.push(policy)
  }
}
