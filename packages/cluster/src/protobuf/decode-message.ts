import type { Json, JsonObject } from '../apiserver/kind-schema.ts'
import { fieldsOf, type MessageField, messageOfKind } from './message-table.ts'
import { specialMessages } from './special-messages.ts'
import { ProtobufError, packedNumbers, type WireField, wireFields } from './wire-reader.ts'

/** More than any object has, and little enough for those who walk its JSON by recursion. */
const MAX_DEPTH = 200

/** An object as JSON, as Go would have written it; undefined when the kind is unknown. Throws ProtobufError. */
export function decodeKind(apiVersion: string, kind: string, bytes: Buffer): JsonObject | undefined {
  const message = messageOfKind(apiVersion, kind)
  return message === undefined ? undefined : decodeMessage(message, bytes, 0)
}

/** Fields that the table does not know are passed over, as Go does: they come from newer clients. */
export function decodeMessage(message: string, bytes: Buffer, depth: number): JsonObject {
  if (depth > MAX_DEPTH) throw new ProtobufError(`nested more than ${MAX_DEPTH} levels deep`)
  const fields = fieldsOf(message)
  // A Map, because a name may be `__proto__`.
  const members = new Map<string, Json>()
  const lists = new Map<string, Json[]>()
  const maps = new Map<string, Map<string, Json>>()
  for (const wire of wireFields(bytes)) {
    const field = fields.get(wire.number)
    if (field === undefined) continue
    if (field.form === 'list') {
      const list = collected(lists, field.name, () => [])
      for (const value of listValues(field, wire, depth)) list.push(value ?? null)
    } else if (field.form === 'map') {
      const [key, value] = mapEntry(field, wire, depth)
      collected(maps, field.name, () => new Map<string, Json>()).set(key, value)
    } else {
      const value = oneValue(field.type, wire, { name: field.name, depth })
      if (field.name === '') for (const [name, inner] of Object.entries(value ?? {})) members.set(name, inner as Json)
      else if (value === undefined || (field.keep === 'not-zero' && isZero(value))) members.delete(field.name)
      else members.set(field.name, value)
    }
  }
  for (const [name, list] of lists) members.set(name, list)
  for (const [name, map] of maps) members.set(name, Object.fromEntries(map))
  return Object.fromEntries(members)
}

function collected<T>(all: Map<string, T>, name: string, make: () => T): T {
  const found = all.get(name) ?? make()
  all.set(name, found)
  return found
}

/** A struct is never zero: Go's JSON has it even when it is empty. */
function isZero(value: Json): boolean {
  return value === '' || value === 0 || value === false
}

const NUMBERS: ReadonlySet<string> = new Set(['int32', 'int64', 'bool'])

function listValues(field: MessageField, wire: WireField, depth: number): (Json | undefined)[] {
  if (wire.wire === 2 && NUMBERS.has(field.type)) return packedNumbers(wire.bytes)
  return [oneValue(field.type, wire, { name: field.name, depth })]
}

/** A message of its own: the key is its field 1, the value 2; either may be missing when it is zero. */
function mapEntry(field: MessageField, wire: WireField, depth: number): [string, Json] {
  const place = { name: field.name, depth }
  let key = ''
  let value: Json | undefined
  for (const part of wireFields(bytesOf(wire, place))) {
    if (part.number === 1) key = bytesOf(part, place).toString()
    else if (part.number === 2) value = oneValue(field.type, part, place)
  }
  return [key, value ?? zeroOf(field.type, depth)]
}

function zeroOf(type: string, depth: number): Json {
  if (type === 'string' || type === 'bytes') return ''
  return messageValue(type, NOTHING, depth + 1) ?? null
}

const NOTHING = Buffer.alloc(0)

interface Place {
  readonly name: string
  readonly depth: number
}

/** Undefined for what is null in JSON. */
function oneValue(type: string, wire: WireField, place: Place): Json | undefined {
  switch (type) {
    case 'string':
      return bytesOf(wire, place).toString()
    case 'bytes':
      return bytesOf(wire, place).toString('base64')
    case 'bool':
      return numberOf(wire, place) !== 0
    case 'int32':
      return numberOf(wire, place) | 0
    case 'int64':
      return numberOf(wire, place)
    case 'double':
      if (wire.wire !== 1) throw wrongType(wire, place)
      return finite(wire.bytes.readDoubleLE())
    default:
      return messageValue(type, bytesOf(wire, place), place.depth + 1)
  }
}

function messageValue(type: string, bytes: Buffer, depth: number): Json | undefined {
  const special = specialMessages.get(type)
  if (special === undefined) return decodeMessage(type, bytes, depth)
  return special(bytes, (message, inner) => decodeMessage(message, inner, depth + 1))
}

/** JSON has no other numbers. */
function finite(value: number): number {
  if (!Number.isFinite(value)) throw new ProtobufError(`a number is ${value}`)
  return value
}

function bytesOf(wire: WireField, place: Place): Buffer {
  if (wire.wire !== 2) throw wrongType(wire, place)
  return wire.bytes
}

function numberOf(wire: WireField, place: Place): number {
  if (wire.wire !== 0) throw wrongType(wire, place)
  return wire.value
}

function wrongType({ wire }: WireField, { name }: Place): ProtobufError {
  return new ProtobufError(`proto: wrong wireType = ${wire} for field ${name.charAt(0).toUpperCase()}${name.slice(1)}`)
}
