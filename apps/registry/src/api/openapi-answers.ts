import { sendBytes } from '@thv/http/server/respond'
import { stringify } from 'yaml'
import { openApiOf } from './http/openapi.ts'
import { type ApiRequest, registryBase } from './http/route.ts'
import { registryOf } from './http/visible-view.ts'

const STANDARD = 'https://github.com/modelcontextprotocol/registry'

const ABOUT = `The MCP Registry API v0.1 (${STANDARD}) for each registry and, at the root, for all registries together, and its administration under /v1. In the paths of the standard /v0 means the same as /v0.1.`

export function openApiJson(request: ApiRequest): void {
  send(request, 'application/json', (document) => `${JSON.stringify(document)}\n`)
}

export function openApiYaml(request: ApiRequest): void {
  send(request, 'application/yaml', (document) =>
    stringify(JSON.parse(JSON.stringify(document)), { aliasDuplicateObjects: false, lineWidth: 0 }),
  )
}

const rendered = new Map<string, Buffer>()

function send(request: ApiRequest, type: string, render: (document: object) => string): void {
  const { params, exchange, api } = request
  const ofRegistry = params.registryName !== ''
  if (ofRegistry) registryOf(request)
  const key = `${type} ${ofRegistry} ${api.version.version}`
  let body = rendered.get(key)
  if (body === undefined) {
    // Registry servers of ToolHive (Go) read another registry only if its document has this version and names the standard.
    const document = ofRegistry
      ? openApiOf(api.routes, {
          base: registryBase,
          version: '1.0.0',
          description: `One registry, by the MCP Registry API v0.1: ${STANDARD}.`,
        })
      : openApiOf(api.routes, { version: api.version.version, description: ABOUT })
    body = Buffer.from(render(document))
    rendered.set(key, body)
  }
  sendBytes(exchange, 200, { type, body, headers: ['Cache-Control', 'no-cache'] })
}
