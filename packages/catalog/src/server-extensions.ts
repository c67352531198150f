import type { Json, JsonObject } from './catalog-entry.ts'
import { isJsonObject, member } from './json-guard.ts'
import { type ObjectReader, readObject } from './object-reader.ts'
import { type Problems, pointerTo } from './problems.ts'
import { publisherProvided, publisherProvidedKey } from './server-document.ts'
import { timestampProblem } from './text.ts'

/** ToolHive's block below publisher-provided; below it one object per image reference or URL. */
export const extensionsKey = 'io.github.stacklok'

/**
 * Checks what the wrapper format asks of publisher-provided blocks: every publisher's block is an object, and ToolHive's holds
 * server extensions. Documents from elsewhere need not follow it: the official registry lets a publisher write anything there.
 */
export function checkPublisherBlocks(document: JsonObject, problems: Problems): void {
  const provided = publisherProvided(document)
  if (provided === undefined) return
  const place = pointerTo('/_meta', publisherProvidedKey)
  for (const [publisher, block] of Object.entries(provided)) {
    if (!isJsonObject(block)) problems.add(pointerTo(place, publisher), 'must be an object')
    else if (publisher === extensionsKey) {
      const reader = readObject(provided, place, problems)
      reader.map(publisher, {}, checkServerExtensions)
    }
  }
}

/** The extensions of one package or remote: those under its own key, else the first in the document's order. */
export function serverExtensions(document: JsonObject, key: string): JsonObject | undefined {
  const provided = publisherProvided(document)
  const block = provided === undefined ? undefined : member(provided, extensionsKey)
  if (!isJsonObject(block)) return undefined
  const own = member(block, key)
  if (isJsonObject(own)) return own
  return Object.values(block).find((value: Json) => isJsonObject(value)) as JsonObject | undefined
}

/** Every `tags` array two levels below publisher-provided, for any publisher. */
export function documentTags(document: JsonObject): ReadonlySet<string> {
  const tags = new Set<string>()
  for (const publisher of Object.values(publisherProvided(document) ?? {})) {
    if (!isJsonObject(publisher)) continue
    for (const block of Object.values(publisher)) {
      const found = isJsonObject(block) ? member(block, 'tags') : undefined
      if (!Array.isArray(found)) continue
      for (const tag of found) if (typeof tag === 'string') tags.add(tag)
    }
  }
  return tags
}

export const toolNameProblem = patternProblem(/^[\w-]+$/, 'must consist of letters, digits, underscores and hyphens')
export const environmentNameProblem = patternProblem(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a name of an environment variable')
const tagProblem = patternProblem(
  /^[a-z0-9][a-z0-9_-]*[a-z0-9]$/,
  'must be two or more lower-case letters, digits, underscores and hyphens',
)
const pathProblem = patternProblem(/^(?:\/[^/\0]+)+\/?$/, 'must be an absolute path')
const uuidProblem = patternProblem(/^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, 'must be a UUID')
const hostProblem = patternProblem(
  /^\.?[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/,
  'must be a host name or .suffix',
)

function checkServerExtensions(block: ObjectReader): void {
  block.text('status', { required: true, oneOf: ['active', 'deprecated', 'Active', 'Deprecated'] })
  block.text('tier', { oneOf: ['Official', 'Community'] })
  block.texts('tools', { unique: true, check: toolNameProblem })
  block.texts('tags', { unique: true, check: tagProblem })
  block.text('overview')
  block.list('tool_definitions', {}, (tool) => {
    tool.text('name', { required: true })
  })
  block.child('metadata', {}, checkMetadata)
  block.child('custom_metadata', {}, () => {})
  block.number('proxy_port', { integer: true, min: 1, max: 65_535 })
  block.flag('stateless')
  block.child('permissions', {}, checkPermissions)
  block.texts('args')
  block.child('provenance', {}, checkProvenance)
  block.texts('docker_tags', { unique: true })
  block.child('oauth_config', {}, checkOauth)
  block.list('env_vars', {}, (variable) => {
    variable.text('name', { required: true, check: environmentNameProblem })
    variable.text('description')
    variable.flag('required')
    variable.flag('secret')
    variable.text('default')
  })
}

export function checkOauth(oauth: ObjectReader): void {
  for (const name of ['issuer', 'authorize_url', 'token_url', 'client_id', 'resource']) oauth.text(name)
  oauth.texts('scopes')
  oauth.flag('use_pkce')
  oauth.child('oauth_params', {}, () => {})
  oauth.number('callback_port', { integer: true, min: 1, max: 65_535 })
}

export function checkPermissions(permissions: ObjectReader): void {
  permissions.text('name')
  permissions.flag('privileged')
  for (const name of ['read', 'write']) permissions.texts(name, { check: pathProblem })
  permissions.child('network', {}, (network) => {
    network.child('outbound', {}, (outbound) => {
      outbound.flag('insecure_allow_all')
      outbound.texts('allow_host', { check: hostProblem })
      const ports = member(outbound.object, 'allow_port')
      if (ports === undefined) return
      const right =
        Array.isArray(ports) && ports.every((port: Json) => Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535)
      if (!right) outbound.problem('allow_port', 'must be an array of ports from 1 to 65535')
    })
  })
}

export function checkProvenance(provenance: ObjectReader): void {
  const names = ['sigstore_url', 'repository_uri', 'repository_ref', 'signer_identity', 'runner_environment', 'cert_issuer']
  for (const name of names) provenance.text(name)
  provenance.child('attestation', {}, (attestation) => {
    attestation.text('predicate_type')
  })
}

function checkMetadata(metadata: ObjectReader): void {
  metadata.number('stars', { min: 0 })
  metadata.text('last_updated', { check: timestampProblem })
  metadata.child('kubernetes', {}, (kubernetes) => {
    for (const name of ['kind', 'namespace', 'name', 'image']) kubernetes.text(name)
    kubernetes.text('uid', { check: uuidProblem })
    kubernetes.text('transport', { oneOf: ['stdio', 'sse', 'streamable-http', 'http'] })
  })
}

function patternProblem(pattern: RegExp, message: string): (text: string) => string | undefined {
  return (text) => (pattern.test(text) ? undefined : message)
}
