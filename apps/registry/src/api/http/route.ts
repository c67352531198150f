import type { Exchange } from '@thv/http/server/exchange'
import type { Static, TObject, TSchema } from 'typebox'
import type { Role } from '../../access/auth-config.ts'
import type { Caller } from './access-port.ts'
import type { ApiContext } from './api-context.ts'
import type { ErrorStatus } from './api-error.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One operation: what the router, the OpenAPI document and the reference know of it. */
export interface Route<Query extends TObject = TObject> {
  readonly method: Method
  /** Segments in braces are parameters. */
  readonly path: string
  readonly operationId: string
  readonly tag: Tag
  readonly summary: string
  readonly description?: string
  /** Role that a caller needs; without it every signed-in caller. `nobody` asks for no token at all. */
  readonly access?: Role | 'nobody'
  readonly query?: Query
  readonly body?: TSchema
  readonly answers: readonly Answer[]
  /** Beside those that follow from parameters, body and access. */
  readonly errors?: readonly ErrorStatus[]
  readonly handler: (request: ApiRequest<Static<Query>>) => void | Promise<void>
}

export interface Answer {
  readonly status: 200 | 201 | 202 | 204
  readonly description: string
  readonly schema?: TSchema
  /** application/json unless told otherwise. */
  readonly type?: string
}

export const tags = {
  servers: 'Reading a registry: the MCP Registry API v0.1. Every path is also there with `/v0` in place of `/v0.1`.',
  publish: 'Writing to the managed source of a registry.',
  sources: 'Administration of sources.',
  registries: 'Administration of registries.',
  entries: 'Administration of published entries.',
  service: 'About the server itself.',
} as const
export type Tag = keyof typeof tags

export const registryBase = '/registry/{registryName}'

/** Keeps the type of the query for the handler; the table itself need not know it. */
export function route<Query extends TObject>(spec: Route<Query>): Route {
  return spec as unknown as Route
}

/** Those that a template does not have are ''. */
export interface PathParameters {
  registryName: string
  serverName: string
  version: string
  name: string
  type: string
}

export interface ApiRequest<Query = unknown> {
  readonly api: ApiContext
  readonly operationId: string
  readonly exchange: Exchange
  readonly caller: Caller
  readonly params: Readonly<PathParameters>
  readonly query: Query
  /** Headers of every answer to this request, unless the response sets them. */
  readonly headers: readonly string[]
}
