import type { ListPage } from '../../store/object-store.ts'
import { readContinue, writeContinue } from '../http/continue-token.ts'
import { type ApiAnswer, type ApiCall, formOf, numberOf } from '../http/request-context.ts'
import { checkForm, partialObject } from '../http/response-form.ts'
import { includeObject, tableOf } from '../http/table.ts'
import { itemText } from '../objects/object-encoder.ts'
import { readStored } from '../objects/read-stored.ts'
import { objectFilter } from '../objects/selectors.ts'
import { apiVersionOf } from '../objects/served-kind.ts'
import { badRequest, expired, StatusError, tooLargeVersion } from '../objects/status-error.ts'
import { checkListOptions } from './list-options.ts'

const TOO_OLD =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'

/** All pages of one list show the store at the revision of the first. */
export function listObjects(call: ApiCall): ApiAnswer {
  const { kind, query, env } = call
  checkListOptions(query)
  const form = formOf(call)
  checkForm(form, kind, true)
  const keep = objectFilter(kind, query)
  const found = pageOf(call, keep)
  const page = { ...found, objects: found.objects.map((object) => readStored(kind, object)) }
  const last = page.objects.at(-1)
  const more = page.remaining > 0 && last !== undefined
  const metadata = {
    resourceVersion: String(page.revision),
    ...(more ? { continue: writeContinue({ revision: page.revision, key: last.key }) } : kind.custom ? { continue: '' } : {}),
    ...(more && keep === undefined ? { remainingItemCount: page.remaining } : {}),
  }
  if (form === 'PartialObjectMetadataList') {
    const items = page.objects.map((object) => partialObject(object.body))
    return { status: 200, text: JSON.stringify({ kind: form, apiVersion: 'meta.k8s.io/v1', metadata, items }) }
  }
  if (form === 'Table') {
    const options = { include: includeObject(query), now: env.clock.now(), metadata }
    const bodies = page.objects.map((object) => object.body)
    return { status: 200, text: JSON.stringify(tableOf(kind, bodies, options)) }
  }
  const head = JSON.stringify({ kind: kind.listKind, apiVersion: apiVersionOf(kind), metadata })
  return { status: 200, text: `${head.slice(0, -1)},"items":[${page.objects.map((object) => itemText(kind, object)).join(',')}]}` }
}

function pageOf({ kind, path, query, env }: ApiCall, keep: ReturnType<typeof objectFilter>): ListPage {
  const { store } = env
  const asked = askedRevision(query)
  if (asked > store.revision) throw tooLargeVersion(asked, store.revision)
  const base = { type: kind.type, namespace: path.namespace, keep }
  const token = query.get('continue') ?? ''
  const limit = limitOf(query, asked)
  if (token !== '') {
    if (asked !== 0 && query.get('resourceVersion') !== null && query.get('resourceVersion') !== '')
      throw badRequest('specifying resource version is not allowed when using continue')
    const { revision, key } = readContinue(token)
    const after = { revision: revision < 0 ? store.revision : revision, key }
    if (after.revision > store.revision) throw badRequest('continue key is not valid: it is of a later state than this server has')
    const page = store.list({ ...base, limit, after })
    if (page === 'expired') throw expired(TOO_OLD, writeContinue({ revision: -1, key }))
    return page
  }
  // Without a match a page of a version is of exactly that one.
  const match = query.get('resourceVersionMatch') ?? ''
  const exact = asked > 0 && (match === 'Exact' || (match === '' && limit !== undefined))
  const page = store.list({ ...base, limit, ...(exact ? { after: { revision: asked, key: '' } } : {}) })
  if (page === 'expired') throw expired(`The resourceVersion for the provided list is too old.`)
  return page
}

/** A list that may be of any age is answered whole, as the real server does from its cache. */
function limitOf(query: URLSearchParams, asked: number): number | undefined {
  const limit = numberOf(query, 'limit') ?? 0
  const any = asked === 0 && query.get('resourceVersion') === '0'
  return limit > 0 && !any ? limit : undefined
}

/** 0 when the client takes any. `refuse` makes what is thrown for a version that is none. */
export function askedRevision(query: URLSearchParams, refuse = refusedList): number {
  const text = query.get('resourceVersion') ?? ''
  if (text === '') return 0
  const quoted = JSON.stringify(text)
  if (!/^\d{1,15}$/.test(text))
    throw refuse(`resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`)
  return Number(text)
}

/** 500 and no reason: the real server does not expect it in a get or a watch. */
export function refusedElsewhere(message: string): StatusError {
  return new StatusError({ code: 500, reason: '', message })
}

function refusedList(why: string): StatusError {
  return badRequest(`invalid resource version: ${why}`)
}
