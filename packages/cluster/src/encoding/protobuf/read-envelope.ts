import { ProtobufError, wireFields } from './wire-reader.ts'

/** runtime.Unknown: the bytes of an object, and what it is. Empty texts when nothing is said. */
export interface Envelope {
  readonly apiVersion: string
  readonly kind: string
  readonly raw: Buffer
}

const PREFIX = Buffer.from('k8s\0')

/** The envelope of an object in a body of `application/vnd.kubernetes.protobuf`. Throws ProtobufError. */
export function readEnvelope(body: Buffer): Envelope {
  if (body.length === 0) throw new ProtobufError('empty data')
  if (!body.subarray(0, PREFIX.length).equals(PREFIX))
    throw new ProtobufError(`provided data does not appear to be a protobuf message, expected prefix [${[...PREFIX].join(' ')}]`)
  if (body.length === PREFIX.length) throw new ProtobufError('empty body')
  const envelope: { apiVersion: string; kind: string; raw: Buffer } = { apiVersion: '', kind: '', raw: Buffer.alloc(0) }
  for (const { number, wire, bytes } of wireFields(body.subarray(PREFIX.length))) {
    if (wire !== 2) continue
    if (number === 1) Object.assign(envelope, typeMeta(bytes))
    else if (number === 2) envelope.raw = bytes
  }
  return envelope
}

function typeMeta(message: Buffer): { apiVersion: string; kind: string } {
  const meta = { apiVersion: '', kind: '' }
  for (const { number, wire, bytes } of wireFields(message)) {
    if (wire !== 2) continue
    if (number === 1) meta.apiVersion = bytes.toString()
    else if (number === 2) meta.kind = bytes.toString()
  }
  return meta
}
