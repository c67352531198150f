import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../json-rpc.ts'
import { METHODS } from '../methods.ts'
import { inputProblem, lackedCapability, legacyQuestion, linkQuestions, modernQuestion } from './questions.ts'

const form = { method: METHODS.elicit, params: { message: 'who?', requestedSchema: {} } }
const link = { method: METHODS.elicit, params: { mode: 'url', url: 'https://example.com/', message: 'open' } }
const withId = { ...link, params: { ...link.params, elicitationId: 'x' } }
const sampling = { method: METHODS.createMessage, params: {} }
const roots = { method: METHODS.rootsList, params: {} }

describe('questions', () => {
  it.each([
    [form, {}, { elicitation: {} }],
    [form, { elicitation: {} }, undefined],
    [form, { elicitation: { form: {} } }, undefined],
    [form, { elicitation: { url: {} } }, { elicitation: {} }],
    [link, { elicitation: {} }, { elicitation: { url: {} } }],
    [link, { elicitation: { form: {} } }, { elicitation: { url: {} } }],
    [link, { elicitation: { url: {} } }, undefined],
    [sampling, { elicitation: {} }, { sampling: {} }],
    [sampling, { sampling: {} }, undefined],
    [roots, {}, { roots: {} }],
    [roots, { roots: {} }, undefined],
  ])('%j needs, of a client with %j: %j', (question, capabilities, lacked) => {
    expect(lackedCapability(question, capabilities)).toEqual(lacked)
  })

  it('about links have no id for modern clients, and one for legacy clients', () => {
    expect(modernQuestion(withId)).toEqual(link)
    expect(legacyQuestion(withId, '2025-11-25')).toBe(withId)
    const minted = legacyQuestion(link, '2025-11-25')
    expect(minted.params).toEqual({ ...link.params, elicitationId: expect.stringMatching(/^[\w-]{36}$/) })
    expect(legacyQuestion(link, '2025-11-25').params['elicitationId']).not.toBe(minted.params['elicitationId'])
    for (const other of [form, sampling, roots])
      expect([modernQuestion(other), legacyQuestion(other, '2025-06-18')]).toEqual([other, other])
  })

  it('with a form name no mode to clients that know none', () => {
    const named = { ...form, params: { ...form.params, mode: 'form' } }
    expect(legacyQuestion(named, '2025-11-25')).toBe(named)
    expect(legacyQuestion(named, '2025-06-18')).toEqual(form)
  })

  it('are made of the error of a server whose user has to open links first', () => {
    const elicitations = [withId.params, { message: 'no address' }, 7, { url: 'https://example.com/2', elicitationId: 'y' }]
    expect(linkQuestions({ code: -32042, message: 'first', data: { elicitations } })).toEqual({
      'elicitation-1': link,
      'elicitation-2': { method: METHODS.elicit, params: { mode: 'url', url: 'https://example.com/2' } },
    })
    const many = Array(1_000).fill(withId.params)
    expect(Object.keys(linkQuestions({ code: -32042, message: '', data: { elicitations: many } }) ?? {})).toHaveLength(16)
  })

  it.each([
    { code: -32041, message: '', data: { elicitations: [withId.params] } },
    { code: -32042, message: '' },
    { code: -32042, message: '', data: { elicitations: 'x' } },
    { code: -32042, message: '', data: { elicitations: [{ mode: 'url' }] } },
  ])('are not made of %j', (error) => {
    expect(linkQuestions(error)).toBeUndefined()
  })

  it.each<[string, JsonObject, string, string | undefined]>([
    ['a form', { inputRequests: { a: form } }, METHODS.toolsCall, undefined],
    ['roots without params', { inputRequests: { a: { method: METHODS.rootsList } } }, METHODS.resourcesRead, undefined],
    ['a state alone', { requestState: 'x' }, METHODS.promptsGet, undefined],
    ['neither', {}, METHODS.toolsCall, 'without saying which'],
    ['a list', { inputRequests: [form] }, METHODS.toolsCall, 'no object'],
    ['a text', { inputRequests: 'x' }, METHODS.toolsCall, 'no object'],
    ['a ping', { inputRequests: { a: { method: 'ping' } } }, METHODS.toolsCall, 'no client can be asked'],
    ['nothing', { inputRequests: { a: {} } }, METHODS.toolsCall, 'no client can be asked'],
    ['a link', { inputRequests: { a: form, b: link } }, METHODS.toolsCall, 'did not declare: {"elicitation":{"url":{}}}'],
    ['a model', { inputRequests: { a: sampling } }, METHODS.toolsCall, 'did not declare: {"sampling":{}}'],
    ['a form in a list', { inputRequests: { a: form } }, METHODS.toolsList, 'in tools/list'],
  ])('of a modern server are checked before they are relayed: %s', (_, result, method, problem) => {
    const found = inputProblem(result, method, { elicitation: {}, roots: {} })
    if (problem === undefined) expect(found).toBeUndefined()
    else expect(found).toContain(problem)
  })
})
