import type { KubeObject, ResourceType } from '@thv/kube'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [member: string]: Json }
export type JsonObject = { readonly [member: string]: Json }

/**
 * Steps on a control plane, and when to look at it. In all texts `{ns}` and `{ns2}` are the scenario's namespaces and
 * `{uid:ConfigMap/a}` is the uid of the object that was made first under this kind and name, `{uid:ConfigMap/a#2}` of the second one.
 */
export type Step =
  | { readonly do: 'create'; readonly object: JsonObject }
  | { readonly do: 'delete'; readonly of: Target; readonly policy?: 'Foreground' | 'Background' | 'Orphan'; readonly graceSeconds?: number }
  | { readonly do: 'patch'; readonly of: Target; readonly body: JsonObject; readonly subresource?: string }
  /** All of one kind in the first namespace, for objects with generated names. */
  | { readonly do: 'deleteAll' | 'patchAll'; readonly kind: string; readonly body?: JsonObject }
  | { readonly do: 'look' }

/** `{ns}` when it has no namespace of its own; the kind knows whether it has one at all. */
export interface Target {
  readonly kind: string
  readonly name: string
  readonly namespace?: string
}

export interface Scenario {
  readonly name: string
  readonly steps: readonly Step[]
}

/** Scenarios that are looked at in the same way. */
export interface ScenarioSet {
  readonly scenarios: readonly Scenario[]
  /** Kinds that steps name and `view` sees. */
  readonly types: readonly ResourceType[]
  /** Made before the first scenario, and deleted after the last. */
  readonly definitions?: readonly JsonObject[]
  /** Names of nodes on which pods are said to run. Nothing is ever scheduled there. They are there as long as the definitions. */
  readonly nodes?: readonly string[]
  /** How long the real controllers may rest between two steps of theirs. */
  readonly restMs?: number
  /** The compared part of an object of a scenario; undefined leaves it out. */
  readonly view: (object: KubeObject) => Json | undefined
}

/** For each look of a scenario: the views, sorted. */
export type Snapshots = readonly Json[]
