import { checkSourceConfig } from '@thv/catalog/sources/fetch/source-config'
import type { CanonicalMCPRegistrySpec, CanonicalRegistryEntry } from '@thv/resources/kinds/mcp-registry/normalise'
import { stringify } from 'yaml'
import type { ExportScope } from '../../../export/export-scope.ts'
import { authProblems, renderAuth } from './auth-config.ts'
import { databaseProblems, renderDatabase } from './database-config.ts'
import { exportSource } from './export-source.ts'
import { CONFIG_FILE, DATABASE_FILE, secretFolder, sourceFolder } from './registry-place.ts'
import { STORAGE_ENTRY } from './storage-entry.ts'

export interface ConfigInput {
  readonly name: string
  readonly spec: CanonicalMCPRegistrySpec
  /** Text of the sync-trigger annotation; undefined when it is absent or empty. */
  readonly syncRequest: string | undefined
  readonly allowPrivateAddresses: boolean
  /** Undefined: nothing of the cluster is exported. */
  readonly exported: ExportScope | undefined
}

export interface FieldProblem {
  readonly field: string
  readonly message: string
}

export interface RenderedConfig {
  /** The content of `config.yaml`. */
  readonly text: string
  /** The part that a running server cannot take over: a change of it needs new pods. */
  readonly fixed: object
  readonly problems: readonly FieldProblem[]
}

/** The configuration of the registry server. Pure. `configYAML` is passed on as it is. */
export function renderServerConfig(input: ConfigInput): RenderedConfig {
  const { name, spec, syncRequest, exported } = input
  if ('configYAML' in spec) return { text: spec.configYAML, fixed: {}, problems: [] }
  const { sources: own, problems } = renderSources(spec)
  // First, so that the copy of a known server hides its source entry.
  const sources = [...(exported === undefined ? [] : [exportSource(name, spec, exported)]), ...own]
  const auth = renderAuth(spec.authConfig)
  const store = spec.databaseConfig === undefined ? { storage: { path: DATABASE_FILE } } : { database: renderDatabase(spec.databaseConfig) }
  const document = {
    registryName: spec.displayName ?? name,
    ...(syncRequest !== undefined && 'registries' in spec && { syncRequest }),
    sources,
    registries: [{ name: servedName(name), sources: sources.map((source) => source.name) }],
    auth,
    ...store,
    sync: { allowPrivateAddresses: input.allowPrivateAddresses },
  }
  const text = `# Written by the operator from MCPRegistry ${name}; changes are taken back. File ${CONFIG_FILE}.\n${stringify(escaped(document))}`
  const fieldProblems = [...problems, ...databaseProblems(spec.databaseConfig), ...authProblems(spec.authConfig), ...pgpassProblems(spec)]
  return { text, fixed: store, problems: fieldProblems }
}

/** Only a whole configuration can name a database without its passwords. */
function pgpassProblems({ pgpassSecretRef }: CanonicalMCPRegistrySpec): FieldProblem[] {
  if (pgpassSecretRef === undefined) return []
  return [
    { field: 'spec.pgpassSecretRef', message: 'belongs to spec.configYAML; use spec.databaseConfig, which names the passwords itself' },
  ]
}

/** Names that are part of the API's paths. */
const RESERVED: ReadonlySet<string> = new Set(['v0', 'x'])

/** The registry that the server offers. */
export function servedName(name: string): string {
  return RESERVED.has(name) ? 'registry' : name
}

type Git = Pick<NonNullable<CanonicalRegistryEntry['git']>, 'repository'>
type Api = Pick<NonNullable<CanonicalRegistryEntry['api']>, 'endpoint'>

/** Addresses end up in ConfigMaps and messages, so that no password may be in them. */
export function credentialProblems({ git, api }: { git?: Git | undefined; api?: Api | undefined }, field: string): FieldProblem[] {
  const advice = 'set git.auth, with the password in a Secret'
  return [
    ...(hasCredentials(git?.repository)
      ? [{ field: `${field}.git.repository`, message: `must not hold a user name or password: ${advice}` }]
      : []),
    ...(hasCredentials(api?.endpoint) ? [{ field: `${field}.api.endpoint`, message: 'must not hold a user name or password' }] : []),
  ]
}

function hasCredentials(address: string | undefined): boolean {
  const url = address === undefined ? null : URL.parse(address)
  return url !== null && /^https?:$/.test(url.protocol) && (url.username !== '' || url.password !== '')
}

type RenderedSource = Readonly<Record<string, unknown>> & { readonly name: string }

function renderSources(spec: CanonicalMCPRegistrySpec): { sources: RenderedSource[]; problems: FieldProblem[] } {
  if ('source' in spec) {
    const format = spec.source.type === 'api' ? 'upstream' : spec.source.format
    const sources = [{ name: STORAGE_ENTRY, format, file: { path: sourceFolder(STORAGE_ENTRY) } }]
    return { sources, problems: credentialProblems(spec.source, 'spec.source') }
  }
  if (!('registries' in spec)) return { sources: [], problems: [] }
  const problems: FieldProblem[] = []
  const sources = spec.registries.map((entry, index) => {
    const source = renderSource(entry)
    // Those of an API are refused below.
    problems.push(...credentialProblems({ git: entry.git, api: undefined }, `spec.registries[${index}]`))
    const check = checkSourceConfig(source, { path: '', fromApi: false })
    if (!check.ok)
      for (const { pointer, message } of check.problems)
        problems.push({ field: `spec.registries[${index}]${pointer.replaceAll('/', '.')}`, message })
    return source
  })
  return { sources, problems }
}

function renderSource(entry: CanonicalRegistryEntry): RenderedSource {
  const { name, format, configMapRef, configMapSelector, git, api, pvcRef, managed, syncPolicy, filter } = entry
  if (managed !== undefined) return { name, managed: {} }
  const common = { name, format, ...(syncPolicy && { syncPolicy }) }
  // The operator has applied the filter of a selector to the merged names, prefixes included.
  if (configMapSelector !== undefined) return { ...common, file: { path: sourceFolder(name) } }
  const filtered = { ...common, ...(filter && { filter }) }
  if (configMapRef !== undefined) return { ...filtered, file: { path: `${sourceFolder(name)}/registry.json` } }
  if (pvcRef !== undefined) return { ...filtered, file: { path: `${sourceFolder(name)}/${pvcRef.path}` } }
  if (git !== undefined) return { ...filtered, git: renderGit(git) }
  const { format: _, ...other } = filtered // an API has one format
  return { ...other, api: { endpoint: api?.endpoint ?? '' } }
}

function renderGit({ auth, ...git }: NonNullable<CanonicalRegistryEntry['git']>): object {
  if (auth === undefined) return git
  const { name, key } = auth.passwordSecretRef
  return { ...git, auth: { username: auth.username, passwordFile: `${secretFolder(name)}/${key}` } }
}

/** The server puts variables into texts that hold `${`: those of users are meant as they stand. */
function escaped(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('${', () => '$${')
  if (Array.isArray(value)) return value.map(escaped)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, escaped(member)]))
}
