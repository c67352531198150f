import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { MAX_VALUES } from '../json-bounds.ts'
import { fieldsOf, type MessageField, messageOfKind } from './message-table.ts'
import { specialMessages } from './special-messages.ts'
import { ProtobufError, packedNumbers, type WireField, wireFields } from './wire-reader.ts'

/** More than any object has, and little enough for those who walk its JSON by recursion. */
const MAX_DEPTH = 200

/** An object as JSON, as Go would have written it; undefined when the kind is unknown. Throws ProtobufError. */
export function decodeKind(apiVersion: string, kind: string, bytes: Buffer): JsonObject | undefined {
  const message = messageOfKind(apiVersion, kind)
  return message === undefined ? undefined : decodeMessage(message, bytes, { depth: 0, budget: { values: MAX_VALUES } })
}

interface Place {
  readonly depth: number
  /** Shared by the whole object. */
  readonly budget: { values: number }
}

/** Fields that the table does not know are passed over, as Go does: they come from newer clients. */
function decodeMessage(message: string, bytes: Buffer, place: Place): JsonObject {
  if (place.depth > MAX_DEPTH) throw new ProtobufError(`nested more than ${MAX_DEPTH} levels deep`)
  const fields = fieldsOf(message)
  // Maps, because a name may be `__proto__`.
  const members = new Map<string, Json>()
  const lists = new Map<string, Json[]>()
  const maps = new Map<string, Map<string, Json>>()
  for (const wire of wireFields(bytes)) {
    if (--place.budget.values < 0) throw new ProtobufError(`made of more than ${MAX_VALUES} values`)
    const field = fields.get(wire.number)
    if (field === undefined) continue
    if (field.form === 'list') {
      const list = collected(lists, field.name, () => [])
      for (const value of listValues(field, wire, place)) list.push(value ?? null)
    } else if (field.form === 'map') {
      const [key, value] = mapEntry(field, wire, place)
      collected(maps, field.name, () => new Map<string, Json>()).set(key, value)
    } else {
      const value = oneValue(field, wire, place)
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

function listValues(field: MessageField, wire: WireField, place: Place): (Json | undefined)[] {
  if (wire.wire !== 2 || !NUMBERS.has(field.type)) return [oneValue(field, wire, place)]
  place.budget.values -= wire.bytes.length // at most
  return packedNumbers(wire.bytes)
}

/** A message of its own: the key is its field 1, the value 2; either may be missing when it is zero. */
function mapEntry(field: MessageField, wire: WireField, place: Place): [string, Json] {
  let key = ''
  let value: Json | undefined
  for (const part of wireFields(bytesOf(field, wire))) {
    if (part.number === 1) key = bytesOf(field, part).toString()
    else if (part.number === 2) value = oneValue(field, part, place)
  }
  return [key, value ?? zeroOf(field.type, place)]
}

function zeroOf(type: string, place: Place): Json {
  return type === 'string' || type === 'bytes' ? '' : (messageValue(type, NOTHING, place) ?? null)
}

const NOTHING = Buffer.alloc(0)

/** Undefined for what is null in JSON. */
function oneValue(field: MessageField, wire: WireField, place: Place): Json | undefined {
  switch (field.type) {
    case 'string':
      return bytesOf(field, wire).toString()
    case 'bytes':
      return bytesOf(field, wire).toString('base64')
    case 'bool':
      return numberOf(field, wire) !== 0
    case 'int32':
      return numberOf(field, wire) | 0
    case 'int64':
      return numberOf(field, wire)
    case 'double':
      if (wire.wire !== 1) throw wrongType(field, wire)
      return finite(wire.bytes.readDoubleLE())
    default:
      return messageValue(field.type, bytesOf(field, wire), place)
  }
}

function messageValue(type: string, bytes: Buffer, { depth, budget }: Place): Json | undefined {
  const special = specialMessages.get(type)
  if (special === undefined) return decodeMessage(type, bytes, { depth: depth + 1, budget })
  return special(bytes, (message, inner) => decodeMessage(message, inner, { depth: depth + 2, budget }))
}

/** JSON has no other numbers. */
function finite(value: number): number {
  if (!Number.isFinite(value)) throw new ProtobufError(`a number is ${value}`)
  return value
}

function bytesOf(field: MessageField, wire: WireField): Buffer {
  if (wire.wire !== 2) throw wrongType(field, wire)
  return wire.bytes
}

function numberOf(field: MessageField, wire: WireField): number {
  if (wire.wire !== 0) throw wrongType(field, wire)
  return wire.value
}

function wrongType({ name }: MessageField, { wire }: WireField): ProtobufError {
  return new ProtobufError(`proto: wrong wireType = ${wire} for field ${name.charAt(0).toUpperCase()}${name.slice(1)}`)
}
