import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { BUILTIN_KINDS } from '@thv/kube-schema/builtin/builtin-kinds'
import { specialMessages } from './special-messages.ts'

/** Where the types are defined. Each folder has a generated.proto, and the Go types whose tags tell their names in JSON. */
const MODULES: Readonly<Record<string, readonly string[]>> = {
  api: ['core', 'apps', 'autoscaling', 'discovery', 'coordination', 'networking', 'rbac', 'events', 'authentication'].map(
    (group) => `${group}/v1`,
  ),
  apimachinery: ['pkg/apis/meta/v1', 'pkg/api/resource', 'pkg/util/intstr', 'pkg/runtime'],
  'apiextensions-apiserver': ['pkg/apis/apiextensions/v1'],
}

/** Bodies of requests that are no stored objects. */
const MORE_KINDS: Readonly<Record<string, readonly string[]>> = {
  v1: ['Binding', 'DeleteOptions'],
  'authentication.k8s.io/v1': ['TokenRequest'],
}

/** The folders of the sources, of this version, in Go's module cache; undefined when one is not there. */
export function sourceFolders(version: string, env: NodeJS.ProcessEnv = process.env): string[] | undefined {
  const cache = env['GOMODCACHE'] ?? join(env['GOPATH'] ?? join(homedir(), 'go'), 'pkg', 'mod')
  const folders = Object.entries(MODULES).flatMap(([module, paths]) =>
    paths.map((path) => join(cache, 'k8s.io', `${module}@${version}`, path)),
  )
  return folders.every((folder) => existsSync(join(folder, 'generated.proto'))) ? folders : undefined
}

/**
 * All messages that a body can consist of, as the text of the generated file; message-table.ts tells how to read it. Deterministic: a
 * test compares it with the sources.
 */
export function generateMessageTable(folders: readonly string[]): string {
  const messages = new Map(folders.flatMap(readFolder))
  const kinds = [...Object.entries(BUILTIN_KINDS), ...Object.entries(MORE_KINDS)].flatMap(([groupVersion, names]) =>
    names.map((name): [string, string] => [`${groupVersion} ${name}`, messageOf(groupVersion, name, messages)]),
  )
  const found = new Map<string, string>()
  for (const [, id] of kinds) collect(id, messages, found)
  const sorted = (entries: Iterable<[string, string]>) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  return `{"kinds": {\n${lines(sorted(kinds))}\n},\n"messages": {\n${lines(sorted(found))}\n}}\n`
}

/** One line each: a diff shows which message changed. */
function lines(members: readonly (readonly [string, string])[]): string {
  return members.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`).join(',\n')
}

interface ProtoField {
  readonly number: number
  readonly label: string
  /** A scalar, or the short name of a message. */
  readonly type: string
}

interface GoField {
  readonly json: string
  readonly isPointer: boolean
  readonly omitsEmpty: boolean
  readonly isInline: boolean
}

interface Message {
  readonly fields: readonly ProtoField[]
  /** By number; undefined for a type that is no struct. */
  readonly go: ReadonlyMap<number, GoField> | undefined
}

const SCALARS: ReadonlySet<string> = new Set(['bool', 'bytes', 'double', 'int32', 'int64', 'string'])

function collect(id: string, messages: ReadonlyMap<string, Message>, found: Map<string, string>): void {
  if (found.has(id) || specialMessages.has(id)) return
  const message = messages.get(id)
  if (message === undefined) throw new Error(`no message ${id}`)
  found.set(id, '')
  found.set(id, message.fields.map((field) => fieldText(id, field, message.go)).join(' '))
  for (const { type } of message.fields) if (!SCALARS.has(type)) collect(type, messages, found)
}

/** NUMBER:NAME=TYPE, see message-table.ts. */
function fieldText(id: string, { number, label, type }: ProtoField, go: Message['go']): string {
  const field = go?.get(number)
  if (field === undefined) throw new Error(`${id}: no Go field has number ${number}`)
  const form = label === 'repeated' ? '[]' : label === 'map' ? '{}' : ''
  const isKept = SCALARS.has(type) && form === '' && !field.omitsEmpty && !field.isPointer
  const mark = field.isPointer && form === '' ? '?' : isKept ? '!' : ''
  return `${number}:${field.isInline ? '' : field.json}=${form}${type}${mark}`
}

function messageOf(groupVersion: string, kind: string, messages: ReadonlyMap<string, Message>): string {
  const [group = '', version = ''] = groupVersion.includes('/') ? groupVersion.split('/') : ['core', groupVersion]
  const own = `${group.split('.', 1)[0]}.${version}.${kind}`
  const id = [own, `meta.${version}.${kind}`].find((name) => messages.has(name))
  if (id === undefined) throw new Error(`no message for ${groupVersion} ${kind}`)
  return id
}

function readFolder(folder: string): [string, Message][] {
  const proto = readFileSync(join(folder, 'generated.proto'), 'utf8').replaceAll(/^\s*\/\/.*$/gm, '')
  const name = shortName(/^package (\S+);/m.exec(proto)?.[1] ?? '')
  const sources = readdirSync(folder).filter((file) => file.endsWith('.go') && !/_test\.go$|^generated\.|^zz_/.test(file))
  const structs = goStructs(sources.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n'))
  return [...proto.matchAll(/^message (\w+) \{\n(.*?)^\}/gms)].map(([, message = '', body = '']) => [
    `${name}.${message}`,
    { fields: protoFields(body, name), go: structs.get(message) },
  ])
}

function protoFields(body: string, local: string): ProtoField[] {
  const full = (type: string) => (SCALARS.has(type) ? type : type.startsWith('.') ? shortName(type.slice(1)) : `${local}.${type}`)
  return [...body.matchAll(/^ {2}(?:(optional|repeated|required) (\S+)|map<string, (\S+)>) \w+ = (\d+);/gm)].map(
    ([, label = 'map', type, value, number]) => ({ number: Number(number), label, type: full(type ?? value ?? '') }),
  )
}

/** `k8s.io.api.core.v1.Pod` is `core.v1.Pod`. */
function shortName(name: string): string {
  const noise = ['k8s', 'io', 'api', 'apimachinery', 'apiextensions_apiserver', 'pkg', 'apis', 'util']
  return name
    .split('.')
    .filter((part) => !noise.includes(part))
    .join('.')
}

function goStructs(source: string): Map<string, Map<number, GoField>> {
  const structs = new Map<string, Map<number, GoField>>()
  for (const [, name = '', body = ''] of source.matchAll(/^type (\w+) struct \{\n(.*?)^\}/gms)) {
    const fields = new Map<number, GoField>()
    for (const [, type = '', tags = ''] of body.matchAll(/^\t(?:\w+\s+)?([\w*[\].]+)\s+`([^`]*)`/gm)) {
      const [json = '', ...options] = (/json:"([^"]*)"/.exec(tags)?.[1] ?? '').split(',')
      const number = /protobuf:"\w+,(\d+),/.exec(tags)?.[1]
      if (number === undefined) continue
      const isInline = options.includes('inline')
      fields.set(Number(number), { json, isPointer: type.startsWith('*'), omitsEmpty: options.includes('omitempty'), isInline })
    }
    structs.set(name, fields)
  }
  return structs
}
