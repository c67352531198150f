import Type, { type Static } from 'typebox'
import { type KubernetesSource, kubernetesSourceSchema } from './kubernetes-source.ts'
import { type SourceType, sourceTypes } from './source-types.ts'

export { checkSourceConfig, type SourceCheck, type SourceCheckOptions } from './check-source-config.ts'
export { type SourceType, sourceTypes } from './source-types.ts'

/*
 * Configuration of a source, as files, the admin API and custom resources spell it. Descriptions become the reference.
 * Durations are texts in Go's syntax ("30m"); the reader of the file has checked them.
 */

const duration = (description: string) => Type.String({ format: 'go-duration', description })
const closed = { additionalProperties: false }

const includeExcludeSchema = Type.Object(
  {
    include: Type.Optional(Type.Array(Type.String(), { description: 'If not empty, only what matches one of these is kept.' })),
    exclude: Type.Optional(Type.Array(Type.String(), { description: 'What matches one of these is dropped, whatever else matches.' })),
  },
  closed,
)

const filterSchema = Type.Object(
  {
    names: Type.Optional({ ...includeExcludeSchema, description: 'Globs on the name, whole or behind its slash; `*` crosses `/`.' }),
    tags: Type.Optional({ ...includeExcludeSchema, description: 'Exact tags.' }),
  },
  closed,
)

const gitSourceSchema = Type.Object(
  {
    repository: Type.String({ description: 'http or https address of the repository.' }),
    branch: Type.Optional(Type.String({ description: 'At most one of branch, tag and commit; none: the default branch.' })),
    tag: Type.Optional(Type.String({ description: 'A tag.' })),
    commit: Type.Optional(Type.String({ description: 'The full hash of a commit.' })),
    path: Type.Optional(Type.String({ default: 'registry.json', description: 'A file, or a folder of which every .json file is read.' })),
    auth: Type.Optional(
      Type.Object(
        {
          username: Type.String({ description: 'User name; what the host wants beside a token.' }),
          passwordFile: Type.String({ description: 'Absolute path of a file with the password or token; read at every fetch.' }),
        },
        { ...closed, description: 'HTTP basic authentication.' },
      ),
    ),
  },
  closed,
)

const apiSourceSchema = Type.Object(
  {
    endpoint: Type.String({ description: 'Base address; `/v0.1/servers` is appended.' }),
    timeout: Type.Optional(duration('Limit of one request, at most 5m. Default 10s.')),
    headersFile: Type.Optional(
      Type.String({
        description: 'Absolute path of a file with one `Name: value` per line, sent with every request; read at every fetch.',
      }),
    ),
  },
  closed,
)

const fileSourceSchema = Type.Object(
  {
    path: Type.Optional(Type.String({ description: 'A file, or a folder of which every .json file is read. One of path, url and data.' })),
    url: Type.Optional(Type.String({ description: 'http or https address of a file.' })),
    data: Type.Optional(Type.String({ description: 'The document itself. Through the admin API only.' })),
    timeout: Type.Optional(duration('Limit of the download. Default 30s.')),
  },
  closed,
)

const managedSourceSchema = Type.Object({}, closed)

export const claimsSchema = Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })]))

/** All that a source may say beside its name; which go together is for `checkSourceConfig`. */
export const sourceSpecSchema = Type.Object(
  {
    git: Type.Optional({ ...gitSourceSchema, description: 'A git repository.' }),
    api: Type.Optional({ ...apiSourceSchema, description: 'Another MCP registry.' }),
    file: Type.Optional({ ...fileSourceSchema, description: 'A file, a folder of files, or an address of a file.' }),
    kubernetes: Type.Optional({
      ...kubernetesSourceSchema,
      description: 'MCP resources of a live cluster, by annotations on them or on HTTPRoutes. In the file only.',
    }),
    managed: Type.Optional({ ...managedSourceSchema, description: 'Nothing is fetched: entries are published here.' }),
    format: Type.Optional(
      Type.Union([Type.Literal('auto'), Type.Literal('toolhive'), Type.Literal('upstream')], {
        default: 'auto',
        description: 'How the entries of git and file sources are written; `auto` looks at the document.',
      }),
    ),
    strict: Type.Optional(
      Type.Boolean({ default: false, description: 'Ask for the full schema instead of repairing what can be repaired.' }),
    ),
    syncPolicy: Type.Optional(
      Type.Object(
        { interval: duration('From one sync to the next, 1s to 8760h.') },
        {
          ...closed,
          description:
            'When it is fetched. Without it at the start, when its configuration changes, and when asked; a `file.path` is followed whenever its files change, with or without it.',
        },
      ),
    ),
    filter: Type.Optional({ ...filterSchema, description: 'Which entries are taken.' }),
    claims: Type.Optional({
      ...claimsSchema,
      description:
        'Who sees its entries: a value, or any of several, per claim. Without claims everybody, but with `auth.authz` super admins only.',
    }),
  },
  closed,
)

export type GitSource = Static<typeof gitSourceSchema>
export type ApiSource = Static<typeof apiSourceSchema>
export type FileSource = Static<typeof fileSourceSchema>

/** How entries of a file are written. `auto` looks at the document. */
export type SourceFormat = 'auto' | 'toolhive' | 'upstream'

/** Claims of a source, registry or entry: a name and one value, or any of several. */
export type Claims = { readonly [name: string]: string | readonly string[] }

/** One source, checked: exactly one of the five blocks is there. */
export interface SourceConfig {
  readonly name: string
  readonly git?: GitSource
  readonly api?: ApiSource
  readonly file?: FileSource
  readonly kubernetes?: KubernetesSource
  readonly managed?: Record<string, never>
  readonly format?: SourceFormat
  /** Ask for the full schema instead of repairing what can be repaired. */
  readonly strict?: boolean
  /** Undefined: fetched at the start, when its configuration changes, and when asked. Managed ones have none. */
  readonly intervalMs?: number
  readonly filter?: import('../../filters.ts').FilterConfig
  readonly claims?: Claims
  /** Another text makes it due once. Managed ones have none. */
  readonly syncRequest?: string
}

export function sourceTypeOf(source: SourceConfig): SourceType {
  for (const type of sourceTypes) if (source[type] !== undefined) return type
  throw new TypeError(`source ${source.name} has no type`)
}
