import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { apiVersionOf, resourceName } from '@thv/kube/client/paths'
import type { KubeObject, ResourceType } from '@thv/kube/objects/types'
import { suggestion } from '../text/closest.ts'

/** A kind of object that the server has, and the words for it. */
export interface ServedResource {
  readonly type: ResourceType
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly verbs: readonly string[]
  /** Of the versions of its group this is the one that the server would choose. */
  readonly isPreferred: boolean
}

export interface KindCatalog {
  /** The kinds that a word names: a kind, plural, short name, `plural.group`, or a category, which is several. Throws `usage`. */
  find(word: string): readonly ServedResource[]
  has(word: string): boolean
  /** The resource of a manifest. */
  ofManifest(apiVersion: string, kind: string): ServedResource | undefined
  /** Why there is no such resource, and what to do. */
  missing(apiVersion: string, kind: string): string
}

const AGGREGATED = ['v2', 'v2beta1'].map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
const ACCEPT = [...AGGREGATED, 'application/json'].join(',')

/** Asks the server what it has: two requests. */
export async function loadKinds(client: KubeClient, signal?: AbortSignal): Promise<KindCatalog> {
  const documents = await Promise.all(['/api', '/apis'].map((path) => client.raw('GET', path, { accept: ACCEPT, signal })))
  return createCatalog(documents.flatMap((document) => resourcesOf(document.json())))
}

export function createCatalog(resources: readonly ServedResource[]): KindCatalog {
  const preferred = resources.filter((each) => each.isPreferred)
  const named = (word: string): readonly ServedResource[] => {
    const lower = word.toLowerCase()
    const byName =
      preferred.find((each) => namesOf(each).includes(lower)) ??
      preferred.find((each) => each.shortNames.includes(lower)) ??
      resources.find((each) => fullNamesOf(each).includes(lower))
    return byName ? [byName] : preferred.filter((each) => each.categories.includes(lower) && each.verbs.includes('list'))
  }
  return {
    find(word) {
      const found = named(word)
      if (found.length > 0) return found
      const known = preferred.flatMap((each) => [each.type.plural, ...each.shortNames])
      throw new ThvError('usage', `the server has no resource type ${JSON.stringify(word)}.${suggestion(word, known)}`)
    },
    has: (word) => named(word).length > 0,
    ofManifest: (apiVersion, kind) => resources.find(({ type }) => type.kind === kind && apiVersionOf(type) === apiVersion),
    missing(apiVersion, kind) {
      const lacks = `the server has no ${kind} of ${apiVersion}`
      const versions = [...new Set(resources.filter(({ type }) => type.kind === kind).map(({ type }) => apiVersionOf(type)))]
      if (versions.length > 0) return `${lacks}: write apiVersion ${versions.join(' or ')}`
      const ofVersion = resources.filter(({ type }) => apiVersionOf(type) === apiVersion).map(({ type }) => type.kind)
      const meant = suggestion(kind, [...new Set(ofVersion)]) || suggestion(kind, [...new Set(preferred.map(({ type }) => type.kind))])
      return meant === '' ? `${lacks}: install its definition first (thv crds prints ours)` : `${lacks}.${meant}`
    },
  }
}

/** `mcpserver.toolhive.stacklok.dev/everything`, as kubectl writes it. */
export function shownName({ type, singular }: ServedResource, name: string): string {
  const word = singular || type.kind.toLowerCase()
  return `${type.group === '' ? word : `${word}.${type.group}`}/${name}`
}

/** `MCPServer default/everything`, for sentences. */
export function shownObject(object: KubeObject): string {
  const { namespace, name, generateName } = object.metadata ?? {}
  return `${object.kind ?? 'object'} ${namespace ? `${namespace}/` : ''}${name ?? `${generateName ?? ''}*`}`
}

function namesOf({ type, singular }: ServedResource): string[] {
  return [type.plural, singular, type.kind.toLowerCase()]
}

function fullNamesOf(each: ServedResource): string[] {
  const { type } = each
  if (type.group === '') return namesOf(each).map((name) => `${name}.${type.version}`)
  const short = each.isPreferred ? [resourceName(type), ...namesOf(each).map((name) => `${name}.${type.group}`)] : []
  return [...short, ...namesOf(each).map((name) => `${name}.${type.version}.${type.group}`)]
}

interface DiscoveryDocument {
  readonly kind?: string
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string }
    readonly versions?: readonly { readonly version: string; readonly resources?: readonly DiscoveredResource[] }[]
  }[]
}

interface DiscoveredResource {
  readonly resource: string
  readonly responseKind?: { readonly kind?: string }
  readonly scope?: string
  readonly singularResource?: string
  readonly verbs?: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
}

function resourcesOf(document: unknown): ServedResource[] {
  const { kind, items = [] } = document as DiscoveryDocument
  if (kind !== 'APIGroupDiscoveryList')
    throw new ThvError('kube_response_malformed', 'the server has no aggregated discovery; Kubernetes 1.27 or newer is required')
  return items.flatMap(({ metadata, versions = [] }) =>
    versions.flatMap(({ version, resources = [] }, index) =>
      resources.map((each) => servedResource(each, { group: metadata?.name ?? '', version, isPreferred: index === 0 })),
    ),
  )
}

function servedResource(
  { resource, responseKind, scope, singularResource = '', verbs = [], shortNames = [], categories = [] }: DiscoveredResource,
  { group, version, isPreferred }: { group: string; version: string; isPreferred: boolean },
): ServedResource {
  const type = { group, version, kind: responseKind?.kind ?? '', plural: resource, namespaced: scope === 'Namespaced' }
  return { type, singular: singularResource, shortNames, categories, verbs, isPreferred }
}
