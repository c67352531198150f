import { jsonEqual } from '@thv/kernel/json'
import type { ConditionUpdate } from '@thv/kube'

/** The addition of one block of a spec, or of one referenced object, to a workload. Kinds of workloads extend it by their configuration document. */
export interface Contribution {
  /** Of the main container. */
  readonly env?: readonly EnvVar[]
  readonly volumes?: readonly Volume[]
  readonly volumeMounts?: readonly VolumeMount[]
  /** Secrets whose content the pods see: pods are replaced when one of them changes. */
  readonly secrets?: readonly string[]
  /** Conditions of the workload to set. Conditions of a resolver that are not named here are removed. */
  readonly conditions?: readonly ConditionUpdate[]
  /** Members of the status, such as `toolConfigHash`. */
  readonly status?: Readonly<Record<string, string>>
}

/**
 * Why the workload cannot run as it is written. It is not started, and what ran before is stopped only when it would be open where
 * the spec asks for a guard.
 */
export interface Blocker {
  /** Exported constants of the kind: the condition that becomes False with this reason; True for those that warn, Unknown for what cannot be found out yet. */
  readonly condition: string
  readonly status?: 'True' | 'False' | 'Unknown'
  readonly reason: string
  /** Says what to do next. */
  readonly message: string
}

export type Resolved<C extends Contribution = Contribution> =
  | { readonly ok: true; readonly contribution: C }
  /** `conditions` are those that are set although the workload is blocked. */
  | { readonly ok: false; readonly blockers: readonly Blocker[]; readonly contribution?: C }

export interface EnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: Readonly<Record<string, unknown>>
}

export interface Volume {
  readonly name: string
  readonly [source: string]: unknown
}

export interface VolumeMount {
  readonly name: string
  readonly mountPath: string
  readonly subPath?: string
  readonly readOnly?: boolean
}

export function blocked(...blockers: Blocker[]): Resolved<never> {
  return { ok: false, blockers }
}

/** A variable that the kubelet fills from a Secret; the pod waits until the Secret is there. */
export function secretVariable(name: string, ref: { name: string; key: string }): EnvVar {
  return { name, valueFrom: { secretKeyRef: { name: ref.name, key: ref.key } } }
}

/** Two parts may need the same volume, but one name cannot stand for two things: that would be a mistake of the operator. */
export function unique<T extends Volume | VolumeMount>(key: keyof T & string, items: readonly T[]): T[] {
  const byKey = new Map<unknown, T>()
  for (const item of items) {
    const before = byKey.get(item[key])
    if (before !== undefined && !jsonEqual(before, item)) throw new RangeError(`two parts of the workload disagree on ${key} ${item[key]}`)
    byKey.set(item[key], item)
  }
  return [...byKey.values()]
}
