import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { decodeKind } from '../../encoding/protobuf/decode-message.ts'
import { readEnvelope } from '../../encoding/protobuf/read-envelope.ts'
import { ProtobufError } from '../../encoding/protobuf/wire-reader.ts'
import { badRequest, type StatusError } from '../objects/status-error.ts'

export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf'

/** Type that a body should hold. */
export interface ExpectedKind {
  readonly kind: string
  /** The core's `v1` unless told otherwise. */
  readonly group?: string
  readonly version?: string
  /** Every group has the kind in each of its versions, and all of them are the same. */
  readonly inEveryGroup?: boolean
}

/** The object as JSON. An object of another kind is read as well: it is the caller who says that it is wrong here. */
export function parseProtobuf(bytes: Buffer, expected: ExpectedKind, refused: (why: string) => StatusError): JsonObject {
  const { group = '', version = 'v1' } = expected
  const envelope = mapErrors(() => readEnvelope(bytes), refused)
  const apiVersion = envelope.apiVersion || (group === '' ? version : `${group}/${version}`)
  const kind = envelope.kind || expected.kind
  const cannot = (why: string) =>
    badRequest(`${kind} in version "${apiVersion.split('/').at(-1)}" cannot be handled as a ${expected.kind}: ${why}`)
  const known = expected.inEveryGroup && kind === expected.kind ? version : apiVersion
  const object = mapErrors(() => decodeKind(known, kind, envelope.raw), cannot)
  if (object === undefined)
    throw cannot(`no kind "${kind}" is registered for version "${apiVersion}" in scheme "pkg/runtime/scheme.go:110"`)
  return { kind, apiVersion, ...object }
}

function mapErrors<T>(read: () => T, refused: (why: string) => StatusError): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof ProtobufError ? refused(error.message) : error
  }
}
