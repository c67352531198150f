import type { TSchema } from 'typebox'
import type { ErrorStatus } from './api-error.ts'
import { type Route, tags } from './route.ts'
import { components, serverName } from './schemas.ts'

export interface OpenApiOptions {
  /** Of the document: the paths begin there. */
  readonly base?: string
  readonly version: string
  readonly description: string
}

/** The OpenAPI 3.1 document of these routes; those that do not begin with `base` are left out. */
export function openApiOf(routes: readonly Route[], options: OpenApiOptions): Record<string, unknown> {
  const { base = '' } = options
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    if (!route.path.startsWith(`${base}/`)) continue
    const path = route.path.slice(base.length)
    paths[path] ??= {}
    Object.assign(paths[path], { [route.method.toLowerCase()]: operationOf(route, path) })
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'MCP registry',
      version: options.version,
      description: options.description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    // Where the paths begin, seen from where the document is.
    servers: [{ url: base === '' ? '/' : '.' }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: components,
      responses: { Error: { description: 'What was wrong.', content: { 'application/json': { schema: schemaRef('Error') } } } },
      securitySchemes: {
        bearerAuth: { type: 'http', scheme: 'bearer', description: 'Where the registry does not run in anonymous mode.' },
      },
    },
  }
}

/** The errors that follow from what a route takes, and its own. */
export function errorsOf(route: Route, path: string = route.path): ErrorStatus[] {
  const statuses = new Set<ErrorStatus>(route.errors)
  // Every route refuses query parameters that it does not know.
  statuses.add(400)
  if (path.includes('{registryName}') || route.path.startsWith('/registry/{registryName}')) statuses.add(404)
  if (route.body !== undefined) for (const status of [408, 413, 415] as const) statuses.add(status)
  if (route.access !== 'nobody') for (const status of [401, 403, 503] as const) statuses.add(status)
  return [...statuses].sort((a, b) => a - b)
}

function operationOf(route: Route, path: string): Record<string, unknown> {
  const responses: Record<string, unknown> = {}
  for (const { status, description, schema, type = 'application/json' } of route.answers)
    responses[status] = { description, ...(schema && { content: { [type]: { schema } } }) }
  for (const status of errorsOf(route, path)) responses[status] = { $ref: '#/components/responses/Error' }
  const parameters = [...pathParameters(path), ...queryParameters(route)]
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description && { description: route.description }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && { requestBody: { required: true, content: { 'application/json': { schema: route.body } } } }),
    responses,
    security: route.access === 'nobody' ? [] : [{}, { bearerAuth: [] }],
  }
}

const label = { type: 'string', minLength: 1, maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' }

const PATH_PARAMETERS: Readonly<Record<string, { description: string; schema: object }>> = {
  registryName: { description: 'Name of the registry.', schema: { ...label, examples: ['default'] } },
  serverName: { description: 'Name of the server; its slash is written %2F.', schema: serverName },
  version: {
    description: 'Version of the server.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^\\S+$', examples: ['1.0.0'] },
  },
  name: { description: 'Its name.', schema: label },
  type: { description: 'Kind of entry.', schema: { type: 'string', enum: ['server'] } },
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    // Published servers go by their own names, configured ones by theirs.
    const of = path.startsWith('/v1/entries/') && name === 'name' ? 'serverName' : name
    return { name, in: 'path', required: true, ...PATH_PARAMETERS[of] }
  })
}

function queryParameters({ query }: Route): object[] {
  if (query === undefined) return []
  return Object.entries(query.properties).map(([name, property]) => {
    const { description, ...schema } = property as TSchema & { description?: string }
    return { name, in: 'query', required: query.required?.includes(name) ?? false, ...(description && { description }), schema }
  })
}

function schemaRef(name: string): object {
  return { $ref: `#/components/schemas/${name}` }
}
