import { resolve } from 'node:path'
import { checkSourceConfig, type SourceConfig, sourceTypes } from '@thv/catalog/sources/fetch/source-config'
import { parseDuration } from '@thv/kernel/duration'
import type { RegistrySpec } from '../store/registry-store.ts'
import { normaliseAuth } from './auth-rules.ts'
import type { ConfigFile, RegistryFile, SourceFile } from './config-schema.ts'
import { didYouMean } from './nearest-key.ts'
import { type NormaliseContext, problemAt } from './normalise-context.ts'
import type { RegistryConfig } from './registry-config.ts'
import { registryNameProblem } from './registry-name.ts'
import { storageOf } from './storage-rules.ts'

/**
 * The rules between keys, and both forms of the file brought to one. It looks at everything, also at a file whose shape is wrong, so that
 * all problems come at once: members may therefore be missing or of another type than `ConfigFile` says. What is given back counts only
 * if there is no problem.
 */
export function normaliseConfig(file: ConfigFile, context: NormaliseContext): RegistryConfig | undefined {
  const { sources, registries } = sourcesAndRegistries(file, context)
  const auth = normaliseAuth(file.auth, context)
  const storage = storageOf(file, context)
  httpRules(file, context)
  clusterRules(sources, registries, context)
  if (context.problems.list.length > 0 || !auth || !storage) return undefined
  const { http, sync } = file
  return {
    ...(file.registryName !== undefined && { registryName: file.registryName }),
    ...(file.syncRequest !== undefined && { syncRequest: file.syncRequest }),
    sources: requested(sources, file.syncRequest),
    registries,
    auth,
    storage,
    http: {
      ...(http.cors && { cors: { origins: http.cors.origins, maxAgeSeconds: seconds(http.cors.maxAge) } }),
      ...(http.allowedHosts && { allowedHosts: http.allowedHosts }),
      compression: http.compression,
      cacheSeconds: seconds(http.cacheMaxAge),
      publicHealth: http.publicHealth,
      maxBodyBytes: http.maxBodyBytes,
    },
    sync: {
      parallel: sync.parallel,
      leaseMs: parseDuration(sync.leaseDuration),
      retryMs: parseDuration(sync.retryInterval),
      jitter: sync.jitter,
      allowedFolders: sync.allowedFolders.map((folder) => resolve(context.folder, folder)),
      allowPrivateAddresses: sync.allowPrivateAddresses,
      maxFileBytes: sync.maxFileBytes,
    },
  }
}

/** A source whose configuration is another is due: the store remembers it, also across restarts and for all replicas. */
function requested(sources: readonly SourceConfig[], syncRequest: string | undefined): readonly SourceConfig[] {
  if (syncRequest === undefined) return sources
  return sources.map((source) => (source.managed === undefined ? { ...source, syncRequest } : source))
}

const seconds = (duration: string) => Math.round(parseDuration(duration) / 1000)

interface Layout {
  readonly sources: readonly SourceConfig[]
  readonly registries: readonly RegistrySpec[]
}

/** The long form (`sources` and `registries`), or the short form of the design documents (a registry with its source in it). */
function sourcesAndRegistries(file: ConfigFile, context: NormaliseContext): Layout {
  const written = listOf<SourceFile>(file.sources)
  const registries = listOf<RegistryFile>(file.registries)
  const short = registries?.some((registry) => typeKeyOf(registry) !== undefined) === true && written === undefined
  if (!registries || registries.length === 0) problemAt(context, 'registries', 'at least one registry must be configured')
  if (short) return shortForm(registries ?? [], context)
  if (!written || written.length === 0) problemAt(context, 'sources', 'at least one source must be configured')
  const sources = (written ?? []).map((source, index) => checkedSource(source, `sources[${index}]`, context))
  uniqueNames(written ?? [], 'sources', context)
  managedOnce(written ?? [], 'sources', context)
  const names = (written ?? []).map((source) => source?.name).filter((name) => typeof name === 'string')
  const specs = (registries ?? []).map((registry, index) => longRegistry(registry, { path: `registries[${index}]`, names, context }))
  uniqueNames(registries ?? [], 'registries', context)
  return { sources: sources.filter((source) => source !== undefined), registries: specs }
}

function shortForm(registries: readonly RegistryFile[], context: NormaliseContext): Layout {
  const sources = registries.map((registry, index) => {
    const path = `registries[${index}]`
    registryName(registry, path, context)
    if (registry?.sources !== undefined)
      problemAt(
        context,
        `${path}.sources`,
        'cannot stand in a file whose registries hold their sources themselves: use one of the two forms',
      )
    const { sources: _, ...source } = registry ?? {}
    return checkedSource(source, path, context)
  })
  uniqueNames(registries, 'registries', context)
  managedOnce(registries, 'registries', context)
  const found = sources.filter((source) => source !== undefined)
  return { sources: found, registries: found.map(({ name, claims }) => ({ name, sources: [name], ...(claims && { claims }) })) }
}

interface LongRegistry {
  readonly path: string
  /** Of all sources. */
  readonly names: readonly string[]
  readonly context: NormaliseContext
}

/** Keys that belong to a source: not to a registry that lists sources. */
const SOURCE_KEYS = ['format', 'strict', 'syncPolicy', 'filter'] as const

function longRegistry(registry: RegistryFile, { path, names, context }: LongRegistry): RegistrySpec {
  registryName(registry, path, context)
  const type = typeKeyOf(registry)
  if (type) problemAt(context, `${path}.${type}`, 'cannot stand beside a list of sources: use one of the two forms for the whole file')
  for (const key of SOURCE_KEYS)
    if (!type && registry?.[key] !== undefined)
      problemAt(context, `${path}.${key}`, 'belongs to a source, not to a registry that lists sources')
  const listed = listOf<string>(registry?.sources)
  if (!type && (!listed || listed.length === 0)) problemAt(context, `${path}.sources`, 'must name at least one source')
  for (const [index, name] of (listed ?? []).entries()) {
    if (typeof name !== 'string') continue
    const at = `${path}.sources[${index}]`
    if (!names.includes(name)) problemAt(context, at, `there is no source with this name${didYouMean(name, names)}`)
    else if (listed?.indexOf(name) !== index) problemAt(context, at, 'is listed twice')
  }
  const { name, claims } = registry ?? {}
  return { name, sources: listed ?? [], ...(claims && { claims }) }
}

function typeKeyOf(registry: RegistryFile | undefined): string | undefined {
  return sourceTypes.find((type) => registry !== null && typeof registry === 'object' && Object.hasOwn(registry, type))
}

function registryName(registry: RegistryFile | undefined, path: string, context: NormaliseContext): void {
  const name = registry?.name
  const problem = typeof name === 'string' && name !== '' ? registryNameProblem(name) : undefined
  if (problem !== undefined) problemAt(context, `${path}.name`, problem)
}

function checkedSource(value: unknown, path: string, context: NormaliseContext): SourceConfig | undefined {
  const result = checkSourceConfig(withAbsolutePath(value, context.folder), { path: '', fromApi: false })
  if (result.ok) return result.source
  for (const { pointer, message } of result.problems) problemAt(context, `${path}${pathOfPointer(pointer)}`, message)
  return undefined
}

/** In a file, relative paths begin at the folder of the file. */
function withAbsolutePath(value: unknown, folder: string): unknown {
  const source = value as SourceFile | undefined
  const path = source?.file?.path
  if (typeof path === 'string' && path !== '') return { ...source, file: { ...source?.file, path: resolve(folder, path) } }
  const kubernetes = source?.kubernetes
  const kubeconfig = kubernetes?.kubeconfig
  if (typeof kubeconfig?.path !== 'string' || kubeconfig.path === '') return value
  return { ...source, kubernetes: { ...kubernetes, kubeconfig: { ...kubeconfig, path: resolve(folder, kubeconfig.path) } } }
}

function uniqueNames(items: readonly ({ name?: unknown } | undefined)[], list: string, context: NormaliseContext): void {
  const seen = new Map<unknown, number>()
  for (const [index, item] of items.entries()) {
    const name = item?.name
    if (typeof name !== 'string') continue
    const first = seen.get(name)
    if (first === undefined) seen.set(name, index)
    else problemAt(context, `${list}[${index}].name`, `is the name of ${list}[${first}] already`)
  }
}

function managedOnce(items: readonly (Partial<SourceFile> | undefined)[], list: string, context: NormaliseContext): void {
  const managed = [...items.entries()].filter(([, item]) => item?.managed !== undefined)
  const second = managed[1]
  if (second) problemAt(context, `${list}[${second[0]}].managed`, `at most one managed source is allowed, found ${managed.length}`)
}

/** Generated names hold namespace and name only, which two clusters may share. */
function clusterRules(sources: readonly SourceConfig[], registries: readonly RegistrySpec[], context: NormaliseContext): void {
  for (const [index, { sources: names }] of registries.entries()) {
    const blocks = names.flatMap((name) => sources.find((source) => source.name === name)?.kubernetes ?? [])
    const clusters = new Map(
      blocks.map((block) => [JSON.stringify([block.kubeconfig?.path, block.kubeconfig?.context]), block.clusterName]),
    )
    const distinct = new Set(clusters.values())
    if (clusters.size > 1 && (distinct.size < clusters.size || distinct.has(undefined)))
      problemAt(context, `registries[${index}]`, 'lists kubernetes sources of several clusters: give each a clusterName of its own')
  }
}

function httpRules({ http }: ConfigFile, context: NormaliseContext): void {
  for (const [index, origin] of (listOf<string>(http?.cors?.origins) ?? []).entries())
    if (typeof origin === 'string' && origin !== '*' && URL.parse(origin)?.origin !== origin)
      problemAt(context, `http.cors.origins[${index}]`, 'must be "*" or an origin such as https://ui.example.com, without a path')
  for (const [index, host] of (listOf<string>(http?.allowedHosts) ?? []).entries())
    if (typeof host === 'string' && host !== '' && URL.parse(`http://${host}/`)?.host !== host.toLowerCase())
      problemAt(context, `http.allowedHosts[${index}]`, 'must be a host name without a port')
}

function listOf<T>(value: unknown): readonly T[] | undefined {
  return Array.isArray(value) ? value : undefined
}

/** `/git/auth` → `.git.auth`, `/filter/names/include/0` → `.filter.names.include[0]`. */
function pathOfPointer(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : /^[A-Za-z_][\w-]*$/.test(part) ? `.${part}` : `.${JSON.stringify(part)}`))
    .join('')
}
