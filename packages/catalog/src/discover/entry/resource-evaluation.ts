import { ExportAnnotation, optsIn } from '../objects/annotations.ts'
import type { ExportOptions } from '../objects/export-options.ts'
import { ExportReason, type ExportWarning, exportWarning } from '../objects/export-warning.ts'
import type { McpResource } from '../objects/mcp-resource.ts'
import type { ObjectRef } from '../objects/object-ref.ts'
import type { RouteUrl } from '../route/route-evaluation.ts'
import { directUrlProblem } from './direct-url.ts'
import type { ExportedRemote } from './exported-remote.ts'

/** URLs that one route gives a resource. */
export interface RouteCandidate {
  readonly route: ObjectRef
  readonly urls: readonly RouteUrl[]
}

export interface ResourceEvaluation {
  readonly resource: McpResource
  /** Never empty. */
  readonly remotes: readonly ExportedRemote[]
}

export interface EvaluatedResource {
  readonly exported?: ResourceEvaluation
  readonly warnings: readonly ExportWarning[]
}

/** The remotes of one resource. `candidates` in the order of namespace and name of their routes. A direct URL wins over routes. */
export function evaluateResource(resource: McpResource, candidates: readonly RouteCandidate[], options: ExportOptions): EvaluatedResource {
  const { kind, namespace, name, annotations, remoteType: type } = resource
  const self: ObjectRef = { kind, namespace, name }
  const warnings: ExportWarning[] = []
  const warn = (reason: ExportReason, message: string) => warnings.push(exportWarning(reason, self, message))

  const routed = candidates.flatMap(({ route, urls }) =>
    urls.map(({ url, gateway }): ExportedRemote => ({ type, url, origin: route, gateway })),
  )
  const wantsDirect = options.mode === 'operator' || optsIn(annotations)
  const url = wantsDirect ? annotations[ExportAnnotation.url] : undefined
  const problem = url === undefined ? undefined : directUrlProblem(url)
  if (problem !== undefined) warn(ExportReason.InvalidRegistryURL, `${ExportAnnotation.url} ${problem}`)
  if (url === undefined && optsIn(annotations) && routed.length === 0)
    warn(ExportReason.MissingRegistryURL, `neither ${ExportAnnotation.url} nor an exported HTTPRoute gives it a URL`)
  if (url !== undefined && problem === undefined) {
    if (routed.length > 0)
      warn(ExportReason.ConflictingConfiguration, `${ExportAnnotation.url} is used and its exported HTTPRoutes are not; use one of both`)
    if (url.startsWith('http:')) warn(ExportReason.InsecureURL, 'a URL without TLS is exported')
    return { exported: { resource, remotes: [{ type, url, origin: self }] }, warnings }
  }
  const remotes = withoutDoubles(routed)
  return { ...(remotes.length === 0 ? {} : { exported: { resource, remotes } }), warnings }
}

export function withoutDoubles(remotes: readonly ExportedRemote[]): readonly ExportedRemote[] {
  const seen = new Set<string>()
  return remotes.filter(({ type, url }) => {
    const key = `${type} ${url}`
    return seen.has(key) ? false : seen.add(key)
  })
}
