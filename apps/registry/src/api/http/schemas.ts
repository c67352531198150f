import { MAX_FILTER_LENGTH, MAX_FILTER_VALUES } from '@thv/catalog/search/search-filters'
import { MAX_HITS, MAX_QUERY_LENGTH } from '@thv/catalog/search/search-index'
import { DEFAULT_LIMIT, MAX_LIMIT, MAX_SEARCH_LENGTH } from '@thv/catalog/snapshot/list-query'
import { claimsSchema, sourceSpecSchema, sourceTypes } from '@thv/catalog/sources/fetch/source-config'
import Type, { type TSchema } from 'typebox'
import { statusCodes } from './api-error.ts'

/* Requests and answers of the API. Named ones become components of the OpenAPI document; `ref` names them. */

const closed = { additionalProperties: false }
const time = (description: string) => Type.String({ format: 'date-time', description })
const statuses = Type.Enum(['active', 'deprecated', 'deleted'])

export const componentNames = [
  'Error',
  'ServerDetail',
  'ServerResponse',
  'ServerList',
  'StatusUpdateRequest',
  'AllVersionsStatusResponse',
  'SourceInfo',
  'SourceList',
  'SourceCreateRequest',
  'SourceEntries',
  'RegistryInfo',
  'RegistryList',
  'RegistryCreateRequest',
  'RegistryEntries',
  'PublishRequest',
  'ClaimsBody',
  'Claims',
  'Me',
] as const
export type ComponentName = (typeof componentNames)[number]

export function ref(name: ComponentName): TSchema {
  return Type.Unsafe({ $ref: `#/components/schemas/${name}` })
}

// ── queries ──

const includeDeleted = Type.Boolean({ default: false, description: 'Deleted ones too.' })

export const listQuery = Type.Object({
  cursor: Type.Optional(Type.String({ description: 'Of the last answer, to go on behind it; the other parameters must be the same.' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT, description: 'How many entries at most.' })),
  search: Type.Optional(
    Type.String({ maxLength: MAX_SEARCH_LENGTH, description: 'A part of name, title or description; case does not matter.' }),
  ),
  updated_since: Type.Optional(time('Only what changed after this moment, deleted ones too.')),
  version: Type.Optional(Type.String({ description: '`latest` of each server, or exactly this version.' })),
  include_deleted: Type.Optional({
    ...includeDeleted,
    description: 'Deleted ones too. Always so with updated_since, where `false` is refused.',
  }),
})

export const versionQuery = Type.Object({ include_deleted: Type.Optional(includeDeleted) })

/** Repeated for any of several values. */
const filterBy = <Items extends TSchema>(items: Items, description: string) =>
  Type.Optional(Type.Array(items, { maxItems: MAX_FILTER_VALUES, description }))
const filterText = Type.String({ minLength: 1, maxLength: MAX_FILTER_LENGTH })

export const DEFAULT_HITS = 10

export const searchQuery = Type.Object({
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_QUERY_LENGTH,
      description:
        'Words of names, titles, descriptions, tags or tools; typing errors are forgiven. May be left out where a filter is given.',
    }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_HITS, default: DEFAULT_HITS, description: 'How many servers at most.' })),
  tag: filterBy(filterText, 'Only servers with this tag, or one of these.'),
  registry_type: filterBy(
    filterText,
    'Only servers with a package of this type, such as npm, pypi or oci; `remote` for those with a remote.',
  ),
  transport: filterBy(Type.Enum(['stdio', 'sse', 'streamable-http']), 'Only servers with a package or remote of this transport.'),
  status: filterBy(Type.Enum(['active', 'deprecated']), 'Only servers whose latest version has this status.'),
  tool: filterBy(filterText, 'Only servers with a tool of this name.'),
})

// ── the standard's ──

export const serverName = Type.String({
  minLength: 3,
  maxLength: 200,
  pattern: '^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?/[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$',
  examples: ['io.github.example/weather'],
})
const open = (description: string) => Type.Object({}, { description })

const ServerDetail = Type.Object(
  {
    $schema: Type.Optional(Type.String({ format: 'uri' })),
    name: serverName,
    description: Type.String({ minLength: 1, maxLength: 100 }),
    version: Type.String({ minLength: 1, maxLength: 255 }),
    title: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    websiteUrl: Type.Optional(Type.String({ format: 'uri' })),
    repository: Type.Optional(
      Type.Object({
        url: Type.String({ format: 'uri' }),
        source: Type.String(),
        id: Type.Optional(Type.String()),
        subfolder: Type.Optional(Type.String()),
      }),
    ),
    icons: Type.Optional(Type.Array(open('An icon.'))),
    packages: Type.Optional(Type.Array(open('A package.'))),
    remotes: Type.Optional(Type.Array(open('A remote transport.'))),
    _meta: Type.Optional(open('Extensions, by reverse DNS name.')),
  },
  { description: 'A `server.json` document. It comes back as it was given: members in their order, unknown ones too.' },
)

const official = Type.Object(
  {
    status: statuses,
    statusMessage: Type.Optional(Type.String({ maxLength: 500 })),
    statusChangedAt: time('When the status last changed.'),
    publishedAt: time('When this version was first published.'),
    updatedAt: time('When this registry’s copy last changed.'),
    isLatest: Type.Boolean({ description: 'The highest version of this server that is not deleted.' }),
  },
  closed,
)

const ServerResponse = Type.Object({
  server: ref('ServerDetail'),
  _meta: Type.Object({ 'io.modelcontextprotocol.registry/official': official }),
})

const ServerList = Type.Object({
  servers: Type.Array(ref('ServerResponse')),
  metadata: Type.Object({
    count: Type.Integer({ minimum: 0, description: 'Entries in this answer.' }),
    nextCursor: Type.Optional(Type.String({ description: 'There is more; absent at the end.' })),
  }),
})

const StatusUpdateRequest = Type.Object(
  {
    status: statuses,
    statusMessage: Type.Optional(Type.String({ maxLength: 500, description: 'Why. Not for status active.' })),
  },
  closed,
)

const AllVersionsStatusResponse = Type.Object({ updatedCount: Type.Integer({ minimum: 0 }), servers: Type.Array(ref('ServerResponse')) })

// ── our own ──

const ErrorBody = Type.Object(
  {
    error: Type.String({ description: 'For people.' }),
    code: Type.Enum(
      [...new Set([...Object.values(statusCodes), 'version_exists', 'invalid_request', 'invalid_token', 'temporarily_unavailable'])],
      {
        description: 'For programs.',
      },
    ),
    problems: Type.Optional(
      Type.Array(
        Type.Object(
          { pointer: Type.String({ format: 'json-pointer', description: 'RFC 6901; empty for the whole.' }), message: Type.String() },
          closed,
        ),
        { description: 'All that is wrong with what was sent.' },
      ),
    ),
  },
  closed,
)

const creationType = Type.Enum(['CONFIG', 'API'], {
  description: 'Made by the configuration file, which alone changes it, or through this API.',
})

const syncStatus = Type.Object({
  phase: Type.Enum(['pending', 'syncing', 'complete', 'failed']),
  lastSyncTime: Type.Optional(time('Of the last success.')),
  lastAttempt: Type.Optional(time('Of the last attempt.')),
  attemptCount: Type.Integer({ minimum: 0, description: 'Failures in a row.' }),
  serverCount: Type.Integer({ minimum: 0 }),
  message: Type.String(),
  problemCount: Type.Integer({ minimum: 0, description: 'Entries that were dropped or repaired.' }),
  problems: Type.Array(
    Type.Object({ entry: Type.String(), pointer: Type.String(), message: Type.String(), severity: Type.Enum(['dropped', 'warning']) }),
    { description: 'At most 100 of them.' },
  ),
})

const sourceType = Type.Enum([...sourceTypes])

const SourceInfo = Type.Object({
  name: Type.String(),
  type: sourceType,
  sourceType,
  creationType,
  sourceConfig: open('The block of its type.'),
  format: Type.Optional(Type.String()),
  strict: Type.Optional(Type.Boolean()),
  filterConfig: Type.Optional(open('Which entries are taken.')),
  syncSchedule: Type.Optional(Type.String({ description: 'Interval, e.g. 30m0s.' })),
  claims: Type.Optional(ref('Claims')),
  syncStatus,
  createdAt: time('When it was made.'),
  updatedAt: time('When it was last changed.'),
})

const versionSummary = {
  version: Type.String(),
  title: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  status: statuses,
  createdAt: time('When it was first written.'),
  updatedAt: time('When it last changed.'),
}
const entryType = Type.Enum(['MCP'])

const RegistryInfo = Type.Object({
  name: Type.String(),
  sources: Type.Array(Type.String(), { description: 'First wins.' }),
  claims: Type.Optional(ref('Claims')),
  creationType,
  createdAt: time('When it was made.'),
  updatedAt: time('When it was last changed.'),
})

/** A cluster is read with the rights of the server, so only its file names one. */
const { kubernetes: _, ...requestable } = sourceSpecSchema.properties
const sourceRequest = Type.Object(requestable, { additionalProperties: false })

export const components: Readonly<Record<ComponentName, TSchema>> = {
  Error: ErrorBody,
  ServerDetail,
  ServerResponse,
  ServerList,
  StatusUpdateRequest,
  AllVersionsStatusResponse,
  SourceInfo,
  SourceList: Type.Object({ sources: Type.Array(ref('SourceInfo')) }),
  SourceCreateRequest: sourceRequest,
  SourceEntries: Type.Object({
    entries: Type.Array(
      Type.Object({
        entryType,
        name: Type.String(),
        claims: Type.Optional(ref('Claims')),
        versions: Type.Array(Type.Object(versionSummary)),
      }),
    ),
  }),
  RegistryInfo,
  RegistryList: Type.Object({ registries: Type.Array(ref('RegistryInfo')) }),
  RegistryCreateRequest: Type.Object(
    {
      sources: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, uniqueItems: true, description: 'First wins.' }),
      claims: Type.Optional(ref('Claims')),
    },
    closed,
  ),
  RegistryEntries: Type.Object({
    entries: Type.Array(
      Type.Object({
        entryType,
        name: Type.String(),
        ...versionSummary,
        sourceName: Type.String(),
        position: Type.Integer({ minimum: 0, description: 'Of the source in the registry.' }),
      }),
    ),
  }),
  PublishRequest: Type.Object({ server: ref('ServerDetail'), claims: Type.Optional(ref('Claims')) }, closed),
  ClaimsBody: Type.Object({ claims: ref('Claims') }, closed),
  Claims: { ...claimsSchema, description: 'Who sees it: a value, or any of several, per claim.' },
  Me: Type.Object({ subject: Type.String(), roles: Type.Array(Type.String()) }),
}
