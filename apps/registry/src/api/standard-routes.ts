import Type from 'typebox'
import { type Route, route } from './http/route.ts'
import { listQuery, ref, searchQuery, versionQuery } from './http/schemas.ts'
import { deleteVersion, publishServer, replaceVersion, setServerStatus, setVersionStatus } from './http/writes.ts'
import { getVersion, listServers, listVersions, searchServers } from './reads.ts'
import { anonymousToken, registryHealth, registryPing, registryVersion } from './service-routes.ts'

/** The standard's own paths, below one registry or below all of them together. */
export function standardRoutes(base: string, suffix: string): Route[] {
  const id = (name: string) => `${name}${suffix}`
  const server = `${base}/servers/{serverName}`
  const version = `${server}/versions/{version}`
  const entry = { status: 200, description: 'The entry.', schema: ref('ServerResponse') } as const
  return [
    route({
      method: 'GET',
      path: `${base}/servers`,
      operationId: id('listServers'),
      tag: 'servers',
      summary: 'All entries, by name and then version, page by page',
      query: listQuery,
      answers: [{ status: 200, description: 'One page.', schema: ref('ServerList') }],
      errors: [503],
      handler: listServers,
    }),
    route({
      method: 'GET',
      path: `${server}/versions`,
      operationId: id('listVersions'),
      tag: 'servers',
      summary: 'All versions of one server, newest publication first',
      query: versionQuery,
      answers: [{ status: 200, description: 'The versions.', schema: ref('ServerList') }],
      errors: [404, 503],
      handler: listVersions,
    }),
    route({
      method: 'GET',
      path: version,
      operationId: id('getVersion'),
      tag: 'servers',
      summary: 'One version of one server; `latest` is the highest that is not deleted',
      query: versionQuery,
      answers: [entry],
      errors: [404, 503],
      handler: getVersion,
    }),
    route({
      method: 'GET',
      path: `${base}/x/dev.toolhive/search`,
      operationId: id('searchServers'),
      tag: 'servers',
      summary: 'Ranked search, and exact filters',
      description:
        'Best first, by the latest version of each server. Looks into names, titles, descriptions, tags and tools. A filter that is ' +
        'repeated takes any of its values; of different filters all must fit. With filters alone, in the order of names.',
      query: searchQuery,
      answers: [{ status: 200, description: 'What was found.', schema: ref('ServerList') }],
      errors: [503],
      handler: searchServers,
    }),
    route({
      method: 'POST',
      path: `${base}/publish`,
      operationId: id('publishServer'),
      tag: 'publish',
      summary: 'Publish a version of a server',
      access: 'manageEntries',
      body: ref('ServerDetail'),
      answers: [entry],
      errors: [409, 422, 501, 503],
      handler: publishServer,
    }),
    route({
      method: 'PUT',
      path: version,
      operationId: id('replaceVersion'),
      tag: 'publish',
      summary: 'Replace the document of a version',
      access: 'manageEntries',
      body: ref('ServerDetail'),
      answers: [entry],
      errors: [404, 409, 422, 501, 503],
      handler: replaceVersion,
    }),
    route({
      method: 'DELETE',
      path: version,
      operationId: id('deleteVersion'),
      tag: 'publish',
      summary: 'Delete a version',
      description: 'It stays as an entry of status deleted, which the status operations can bring back.',
      access: 'manageEntries',
      answers: [{ ...entry, description: 'The entry as it was deleted.' }],
      errors: [404, 409, 501, 503],
      handler: deleteVersion,
    }),
    route({
      method: 'PATCH',
      path: `${version}/status`,
      operationId: id('setVersionStatus'),
      tag: 'publish',
      summary: 'Set the status of one version',
      access: 'manageEntries',
      body: ref('StatusUpdateRequest'),
      answers: [entry],
      errors: [404, 409, 501, 503],
      handler: setVersionStatus,
    }),
    route({
      method: 'PATCH',
      path: `${server}/status`,
      operationId: id('setServerStatus'),
      tag: 'publish',
      summary: 'Set the status of all versions, all or none',
      access: 'manageEntries',
      body: ref('StatusUpdateRequest'),
      answers: [{ status: 200, description: 'What was changed.', schema: ref('AllVersionsStatusResponse') }],
      errors: [404, 409, 501, 503],
      handler: setServerStatus,
    }),
    route({
      method: 'GET',
      path: `${base}/health`,
      operationId: id('registryHealth'),
      tag: 'service',
      summary: 'Whether the registry is there, as the standard’s tools ask',
      answers: [{ status: 200, description: 'It is.', schema: Type.Object({ status: Type.Literal('ok') }) }],
      handler: registryHealth,
    }),
    route({
      method: 'GET',
      path: `${base}/ping`,
      operationId: id('registryPing'),
      tag: 'service',
      summary: 'An answer without meaning',
      answers: [{ status: 200, description: 'Pong.', schema: Type.Object({ pong: Type.Literal(true) }) }],
      handler: registryPing,
    }),
    route({
      method: 'GET',
      path: `${base}/version`,
      operationId: id('registryVersion'),
      tag: 'service',
      summary: 'Version of the server, as the standard’s tools read it',
      answers: [
        {
          status: 200,
          description: 'The version.',
          schema: Type.Object({ version: Type.String(), git_commit: Type.String(), build_time: Type.String() }),
        },
      ],
      handler: registryVersion,
    }),
    route({
      method: 'POST',
      path: `${base}/auth/none`,
      operationId: id('anonymousToken'),
      tag: 'service',
      summary: 'A token that opens nothing, for publishing tools that need one',
      description: 'In anonymous mode only, and only where publishing needs no token.',
      answers: [
        { status: 200, description: 'The token.', schema: Type.Object({ registry_token: Type.String(), expires_at: Type.Integer() }) },
      ],
      errors: [403, 404],
      handler: anonymousToken,
    }),
  ]
}
