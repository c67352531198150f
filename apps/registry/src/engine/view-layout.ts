import { hash } from 'node:crypto'
import type { RegistryRecord, SourceRecord } from '../store/registry-store.ts'
import type { ViewSpec } from '../views/view-builder.ts'
import type { ViewTarget } from './publication.ts'

/** One view, and everybody who sees it. */
export interface LaidOutView {
  readonly spec: ViewSpec
  readonly targets: readonly ViewTarget[]
}

export interface LayoutInput {
  readonly registries: readonly RegistryRecord[]
  readonly sources: readonly SourceRecord[]
  /** Views for readers with some claims only. */
  readonly wanted: readonly ViewTarget[]
}

/** The views to serve; registries and readers that see the same share one view. */
export function layOutViews(input: LayoutInput): Map<string, LaidOutView> {
  const layout = new Map<string, { spec: ViewSpec; targets: ViewTarget[] }>()
  const names = [...input.registries.map(({ spec }) => spec.name), undefined]
  const all: ViewTarget[] = names.map((registry) => ({ registry, visible: undefined }))
  for (const target of [...all, ...input.wanted]) {
    const spec = specOf(target, input)
    if (!spec) continue
    const key = JSON.stringify([spec.sources.map(({ name }) => name), target.visible?.toSorted() ?? null, spec.floorMs])
    const same = layout.get(key)
    if (same) same.targets.push(target)
    else layout.set(key, { spec, targets: [target] })
  }
  return layout
}

function specOf({ registry, visible }: ViewTarget, { registries, sources }: LayoutInput): ViewSpec | undefined {
  const parts = registry === undefined ? registries : registries.filter(({ spec }) => spec.name === registry)
  if (registry !== undefined && parts.length === 0) return undefined
  const names = new Set(parts.flatMap(({ spec }) => spec.sources))
  const claims = new Map(sources.map(({ config }) => [config.name, config.claims]))
  return {
    sources: [...names].map((name) => ({ name, claims: claims.get(name) })),
    visible: visible && new Set(visible),
    floorMs: Math.max(0, ...parts.map(({ updatedAt }) => Date.parse(updatedAt) || 0)),
  }
}

/** Moves whenever an entry of the source does. */
export interface SourceContent {
  readonly id: number | undefined
  readonly revision: number
  readonly updatedMs: number
}

/** To be raised when the same rows are served otherwise. */
const FORMAT = 1

/** From what is served alone, so that all replicas give the same; with times, because a store that is lost counts from 1 again. */
export function viewTag(spec: ViewSpec, contentOf: (source: string) => SourceContent): string {
  const content = spec.sources.map(({ name, claims }) => [name, claims ?? null, contentOf(name)])
  const visible = spec.visible ? [...spec.visible].sort() : null
  return hash('sha256', JSON.stringify([FORMAT, content, visible, spec.floorMs]), 'base64url').slice(0, 16)
}
