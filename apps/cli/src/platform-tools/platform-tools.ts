import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import type { KubeObject } from '@thv/kube/objects/types'
import { mcpServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { resourceTypeOf } from '@thv/resources/schema/kind-definition'
import { SERVER_KINDS } from '../cluster/server-kinds.ts'
import type { OwnTool } from './tool-backend.ts'

export interface PlatformToolsDeps {
  /** With the rights of the user who runs the platform. */
  readonly client: Pick<KubeClient, 'listAll'>
  /** Finds servers in the platform's registry, best first. */
  readonly search: (query: string, limit: number, signal: AbortSignal) => Promise<readonly FoundServer[]>
}

export interface FoundServer {
  readonly name: string
  readonly version: string
  readonly description?: string
}

interface Server extends KubeObject {
  readonly spec?: { readonly remoteUrl?: string }
  readonly status?: { readonly phase?: string; readonly url?: string }
}

const KINDS = [...SERVER_KINDS, resourceTypeOf(mcpServerEntry)]
const MAX_QUERY = 200
const MAX_FOUND = 20
const READ_ONLY = { readOnlyHint: true, openWorldHint: false }

/** Read-only tools about the local platform. */
export function platformTools({ client, search }: PlatformToolsDeps): readonly OwnTool[] {
  return [
    {
      item: {
        name: 'list_servers',
        title: 'List the servers of this platform',
        description: 'Lists the MCP servers that are declared on this platform, with kind, phase and URL.',
        inputSchema: { type: 'object', properties: {}, additionalProperties: false },
        outputSchema: listOf('servers', { kind: TEXT, namespace: TEXT, name: TEXT, phase: TEXT, url: TEXT }, ['kind', 'namespace', 'name']),
        annotations: READ_ONLY,
      },
      async call(_, signal) {
        const lists = await Promise.all(KINDS.map((kind) => client.listAll(kind, { signal })))
        return { servers: lists.flatMap(({ items }, index) => items.map((server: Server) => rowOf(server, KINDS[index]?.kind ?? ''))) }
      },
    },
    {
      item: {
        name: 'search_registry',
        title: 'Search the registry of this platform',
        description: 'Finds MCP servers in the registry of this platform, best matches first.',
        inputSchema: {
          type: 'object',
          properties: {
            query: { type: 'string', minLength: 1, maxLength: MAX_QUERY, description: 'Words to look for.' },
            limit: { type: 'integer', minimum: 1, maximum: MAX_FOUND, default: 5 },
          },
          required: ['query'],
          additionalProperties: false,
        },
        outputSchema: listOf('servers', { name: TEXT, version: TEXT, description: TEXT }, ['name', 'version']),
        annotations: READ_ONLY,
      },
      async call({ query, limit = 5 }, signal) {
        if (typeof query !== 'string' || query.trim() === '' || query.length > MAX_QUERY)
          throw new ThvError('usage', `query must be a text of 1 to ${MAX_QUERY} characters`)
        if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > MAX_FOUND)
          throw new ThvError('usage', `limit must be a number from 1 to ${MAX_FOUND}`)
        const found = await search(query, limit, signal)
        return { servers: found.map(({ name, version, description }) => ({ name, version, ...(description && { description }) })) }
      },
    },
  ]
}

const TEXT = { type: 'string' }

function listOf(member: string, properties: Record<string, object>, required: readonly string[]) {
  const items = { type: 'object', properties, required }
  return { type: 'object', properties: { [member]: { type: 'array', items } }, required: [member] }
}

function rowOf({ metadata, spec, status }: Server, kind: string) {
  const url = status?.url ?? spec?.remoteUrl
  return {
    ...{ kind, namespace: metadata.namespace ?? '', name: metadata.name },
    ...(status?.phase !== undefined && { phase: status.phase }),
    ...(url !== undefined && { url }),
  }
}
