import Type from 'typebox'
import { adminRoutes } from './admin/admin-routes.ts'
import { type Route, registryBase, route } from './http/route.ts'
import { openApiJson, openApiYaml } from './openapi-answers.ts'
import { standardRoutes } from './standard-routes.ts'

const openApiDocument = Type.Object({ openapi: Type.String() }, { description: 'An OpenAPI 3.1 document.' })

function openApiRoutes(base: string, suffix: string): Route[] {
  const access = base === '' ? ({ access: 'nobody' } as const) : {}
  return [
    route({
      method: 'GET',
      path: `${base}/openapi.json`,
      operationId: `openApiJson${suffix}`,
      tag: 'service',
      summary: 'This document',
      ...access,
      answers: [{ status: 200, description: 'The document.', schema: openApiDocument }],
      handler: openApiJson,
    }),
    route({
      method: 'GET',
      path: `${base}/openapi.yaml`,
      operationId: `openApiYaml${suffix}`,
      tag: 'service',
      summary: 'This document as YAML',
      ...access,
      answers: [{ status: 200, description: 'The document.', schema: openApiDocument, type: 'application/yaml' }],
      handler: openApiYaml,
    }),
  ]
}

/** Everything that the public address answers, except health: that is in health-routes. */
export const routes: readonly Route[] = [
  ...standardRoutes(`${registryBase}/v0.1`, ''),
  ...standardRoutes('/registry/v0.1', 'OfAll'),
  // Where clients of the standard look that know nothing of several registries.
  ...standardRoutes('/v0.1', 'AtRoot'),
  ...adminRoutes,
  ...openApiRoutes('', ''),
  ...openApiRoutes(registryBase, 'OfRegistry'),
]
