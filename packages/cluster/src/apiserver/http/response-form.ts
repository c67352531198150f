import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { metaOf, type ServedKind } from '../objects/served-kind.ts'
import { StatusError } from '../objects/status-error.ts'

/** Form that a client asks for instead of the object itself. */
export type AnswerForm = 'Object' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList'

const YAML = 'application/yaml'
/** Answers are JSON or YAML; who would rather have protobuf gets JSON. */
const KNOWN_TYPES: ReadonlySet<string> = new Set(['application/json', '*/*', 'application/vnd.kubernetes.protobuf', YAML])
const FORMS: ReadonlySet<string> = new Set(['Table', 'PartialObjectMetadata', 'PartialObjectMetadataList'])

/** The first of the media types named by `Accept` that we have decides. Throws 406 when there is none: another form would not be understood. */
export function answerForm(accept: string): AnswerForm {
  if (accept === '') return 'Object'
  let known = false
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    if (!KNOWN_TYPES.has(type)) continue
    known = true
    const given = new Map(parameters.map((parameter) => parameter.split('=', 2) as [string, string]))
    const form = given.get('as')
    if (form === undefined) return 'Object'
    if (FORMS.has(form) && given.get('g') === 'meta.k8s.io' && given.get('v') === 'v1') return form as AnswerForm
  }
  throw notAcceptable(
    known
      ? 'only the following media types are accepted: application/json, application/yaml'
      : '406: Not Acceptable\n\nAvailable representations: application/json, application/yaml',
  )
}

/** Whether the first of the media types that we have is YAML. */
export function wantsYaml(accept: string): boolean {
  const types = accept.split(',').map((range) => range.split(';', 1)[0]?.trim() ?? '')
  return types.find((type) => KNOWN_TYPES.has(type)) === YAML
}

/** Refuses the form of a list for one object, and the other way round. */
export function checkForm(form: AnswerForm, { kind, listKind, group, custom }: ServedKind, isList: boolean): void {
  if (form === 'PartialObjectMetadata' && isList)
    throw notAcceptable(`you requested ${form}, but the requested object is a list (${goType(listKind)})`)
  if (form === 'PartialObjectMetadataList' && !isList)
    throw notAcceptable(`you requested ${form}, but the requested object is not a list (${goType(kind)})`)

  function goType(name: string): string {
    if (custom) return isList ? '*unstructured.UnstructuredList' : '*unstructured.Unstructured'
    return `*${group === '' ? 'core' : (group.split('.', 1)[0] ?? '')}.${name}`
  }
}

export function partialObject(body: JsonObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: metaOf(body) }
}

export function notAcceptable(message: string): StatusError {
  return new StatusError({ code: 406, reason: 'NotAcceptable', message })
}
