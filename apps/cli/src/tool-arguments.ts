import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { propertySchema, typesOf, typeText, ValueProblem, valueFor } from './schema-value.ts'
import { suggestion } from './text/closest.ts'

export interface ArgumentsOptions {
  readonly tool: string
  readonly inputSchema: unknown
  readonly cwd: string
}

/**
 * The arguments of a tool from words of the command line: `k=v` in the type that the schema wants, `k:=json` as it is, `k=@file` and
 * `k:=@file` from a file, `@file` for a JSON object of several. A word that is repeated makes an array, where one is wanted.
 */
export function toolArguments(words: readonly string[], options: ArgumentsOptions): JsonObject {
  const schema = isObject(options.inputSchema) ? options.inputSchema : {}
  const args: Record<string, unknown> = Object.create(null) // no name of an argument means anything to it
  for (const word of words) {
    if (word.startsWith('@')) Object.assign(args, objectFrom(word.slice(1), options.cwd))
    else add(args, splitWord(word), { ...options, schema })
  }
  demandRequired(args, schema, options.tool)
  return args
}

interface Word {
  readonly name: string
  readonly isRaw: boolean
  readonly value: string
}

interface Target extends ArgumentsOptions {
  readonly schema: JsonObject
}

function splitWord(word: string): Word {
  const at = word.indexOf('=')
  if (at <= 0 || word.startsWith(':='))
    throw usage(`${JSON.stringify(word)} is no argument: write name=value, name:=JSON, name=@file or @file`)
  const isRaw = word[at - 1] === ':'
  return { name: word.slice(0, isRaw ? at - 1 : at), isRaw, value: word.slice(at + 1) }
}

function add(args: Record<string, unknown>, { name, isRaw, value }: Word, target: Target): void {
  const text = value.startsWith('@') ? textFrom(value.slice(1), target.cwd) : value
  if (isRaw) {
    args[name] = jsonFrom(text, `argument ${JSON.stringify(name)}`)
    return
  }
  const property = propertySchema(target.schema, declared(name, target))
  const isList = typesOf(target.schema, property).join() === 'array' && !text.trimStart().startsWith('[')
  try {
    const read = valueFor(target.schema, isList ? propertySchema(target.schema, property['items']) : property, text)
    if (isList) args[name] = [...(Array.isArray(args[name]) ? args[name] : []), read]
    else if (Object.hasOwn(args, name)) throw new ValueProblem('was given before')
    else args[name] = read
  } catch (error) {
    if (!(error instanceof ValueProblem)) throw error
    throw usage(`argument ${JSON.stringify(name)} of ${target.tool} ${error.message}`)
  }
}

/** The schema of an argument. An unknown name is most likely a typing error, unless the schema allows any. */
function declared(name: string, { schema, tool }: Target): unknown {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  if (Object.hasOwn(properties, name)) return properties[name]
  const names = Object.keys(properties)
  const { additionalProperties } = schema
  if (names.length === 0 ? additionalProperties !== false : additionalProperties === true || isObject(additionalProperties))
    return additionalProperties
  const known = names.length === 0 ? 'it takes none' : `it takes ${names.join(', ')}`
  throw usage(`${tool} has no argument ${JSON.stringify(name)}: ${known}.${suggestion(name, names)}`)
}

function demandRequired(args: JsonObject, schema: JsonObject, tool: string): void {
  const required = Array.isArray(schema['required']) ? schema['required'].filter((each) => typeof each === 'string') : []
  const missing = required.filter((name) => !Object.hasOwn(args, name))
  if (missing.length === 0) return
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const shown = missing.map((name) => `${name}=${typeText(schema, propertySchema(schema, properties[name]))}`)
  throw usage(
    `${tool} needs ${missing.length === 1 ? 'an argument' : 'arguments'} that ${missing.length === 1 ? 'is' : 'are'} missing: ${shown.join(' ')}`,
  )
}

function objectFrom(path: string, cwd: string): JsonObject {
  const value = jsonFrom(textFrom(path, cwd), path)
  if (!isObject(value)) throw usage(`${path} must hold a JSON object of arguments`)
  return value
}

function jsonFrom(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usage(`${what} is not JSON: ${(error as Error).message}`)
  }
}

const MAX_BYTES = 16 * 1024 * 1024

function textFrom(path: string, cwd: string): string {
  const file = resolve(cwd, path)
  try {
    if (statSync(file).size > MAX_BYTES) throw usage(`${path} is larger than ${MAX_BYTES} bytes`)
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    if (error instanceof ThvError) throw error
    const code = (error as NodeJS.ErrnoException).code
    throw usage(
      `${path} cannot be read${code === 'ENOENT' ? ': there is no such file' : code === undefined || code.startsWith('ERR_ENC') ? ': it is not text in UTF-8' : ` (${code})`}`,
    )
  }
}

function usage(message: string): ThvError {
  return new ThvError('usage', message)
}
