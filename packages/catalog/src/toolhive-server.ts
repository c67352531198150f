import { member } from './json-guard.ts'
import type { ObjectReader } from './object-reader.ts'
import { checkOauth, checkPermissions, checkProvenance, environmentNameProblem, toolNameProblem } from './server-extensions.ts'
import { serverNameProblem } from './server-name.ts'
import { timestampProblem, unseenProblem, webUrlProblem } from './text.ts'

export interface ToolhiveServerRules {
  readonly key: string
  readonly remote: boolean
  readonly strict: boolean
}

const COMMON = (
  'name title overview description tier status transport tools tool_definitions stateless tags repository_url metadata ' +
  'custom_metadata proxy_port env_vars'
).split(' ')
const CONTAINER = [...COMMON, ...'image target_port permissions args docker_tags provenance'.split(' ')]
const REMOTE = [...COMMON, ...'url headers oauth_config'.split(' ')]

/** Types are always checked; what must be there, how long it is and which members exist only with the full schema. */
export function checkToolhiveServer(server: ObjectReader, rules: ToolhiveServerRules): void {
  const { strict, remote } = rules
  checkKey(server, rules)
  server.text('name')
  server.text('title', strict ? { check: unseenProblem } : {})
  server.text('overview')
  server.text('description', strict ? { required: true, min: 10, max: 500 } : {})
  server.text('tier', strict ? { required: true, oneOf: ['Official', 'Community'] } : {})
  server.text('status', { required: strict, oneOf: strict ? ['Active', 'Deprecated'] : ['Active', 'Deprecated', 'active', 'deprecated'] })
  server.text('transport', { required: strict, oneOf: remote ? ['sse', 'streamable-http'] : ['stdio', 'sse', 'streamable-http'] })
  server.texts('tools', strict ? { required: true, min: 1, unique: true, check: toolNameProblem } : {})
  server.texts('tags', strict ? { min: 1, unique: true } : {})
  server.list('tool_definitions', {}, (tool) => {
    tool.text('name', { required: true })
  })
  server.flag('stateless')
  server.text('repository_url', strict ? { check: webUrlProblem } : {})
  server.child('metadata', {}, (metadata) => {
    metadata.number('stars', { min: 0 })
    metadata.number('pulls', { min: 0 })
    metadata.text('last_updated', { check: strict ? timestampProblem : undefined })
  })
  server.child('custom_metadata', {}, () => {})
  server.number('proxy_port', { integer: true, min: 1, max: 65_535 })
  server.list('env_vars', {}, (variable) => checkVariable(variable, strict))
  if (remote) checkRemoteParts(server, strict)
  else checkContainerParts(server, strict)
  if (strict) refuseUnknown(server, remote ? REMOTE : CONTAINER)
}

function checkKey(server: ObjectReader, { key, strict }: ToolhiveServerRules): void {
  if (strict) {
    if (!/^[a-z0-9][a-z0-9-]+[a-z0-9]$/.test(key))
      server.problem('', 'its key must be three or more lower-case letters, digits and hyphens')
    return
  }
  const named = member(server.object, 'name')
  const name = typeof named === 'string' && named !== '' ? named : key
  if (name === '') return // reported as missing
  const problem = serverNameProblem(name.includes('/') ? name : `io.github.stacklok/${name}`)
  if (problem !== undefined) server.problem(name === named ? 'name' : '', problem)
}

function checkContainerParts(server: ObjectReader, strict: boolean): void {
  server.text('image', { required: true, min: 1, check: strict ? imageProblem : noSpaces })
  server.number('target_port', { integer: true, min: 1, max: 65_535 })
  server.child('permissions', {}, (permissions) => {
    if (strict) checkPermissions(permissions)
  })
  server.texts('args')
  server.texts('docker_tags', strict ? { unique: true } : {})
  server.child('provenance', {}, checkProvenance)
}

function checkRemoteParts(server: ObjectReader, strict: boolean): void {
  server.text('url', { required: true, check: (url) => (/^https?:\/\/\S+$/.test(url) ? undefined : 'must be an http or https URL') })
  server.list('headers', {}, (header) => {
    header.text('name', { required: true, check: strict ? headerNameProblem : undefined })
    header.text('description', { required: strict })
    header.flag('required', { required: strict })
    header.flag('secret')
    checkDefault(header)
    header.texts('choices')
  })
  server.child('oauth_config', {}, checkOauth)
}

function checkVariable(variable: ObjectReader, strict: boolean): void {
  variable.text('name', { required: true, min: 1, check: strict ? environmentNameProblem : undefined })
  variable.text('description', strict ? { required: true, min: 5, max: 200 } : {})
  variable.flag('required', { required: strict })
  variable.flag('secret')
  checkDefault(variable)
}

/** People write `"default": 8080`; the text of it is meant. */
function checkDefault(variable: ObjectReader): void {
  const value = member(variable.object, 'default')
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return
  variable.text('default')
}

function refuseUnknown(server: ObjectReader, known: readonly string[]): void {
  for (const name of Object.keys(server.object)) if (!known.includes(name)) server.problem(name, 'is not a member of this format')
}

/** host[:port]/path[:tag][@digest]; published files carry digests although the format's own pattern knows none. */
function imageProblem(image: string): string | undefined {
  const pattern = /^[a-zA-Z0-9][\w.-]*(?::\d{1,5})?(?:\/[a-z0-9][\w.-]*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[a-f0-9]{64})?$/
  return image.length <= 512 && pattern.test(image) ? undefined : 'must be an image reference'
}

function headerNameProblem(name: string): string | undefined {
  return /^[A-Za-z0-9][A-Za-z0-9-]*$/.test(name) ? undefined : 'must be a header name'
}

function noSpaces(text: string): string | undefined {
  return /\s/.test(text) ? 'must not contain spaces' : undefined
}
