import { describe, expect, it } from 'vitest'
import { acceptedForms } from './accepted-forms.ts'

describe('acceptedForms', () => {
  it.each([
    ['application/json, text/event-stream', true, true],
    ['text/event-stream, application/json', true, true],
    ['text/event-stream,application/json;q=0.5', true, true],
    ['TEXT/Event-Stream , */*;q=0.1', true, true],
    ['*/*', true, true],
    ['application/json', true, false],
    ['application/*', true, false],
    ['text/event-stream', false, true],
    ['text/*', false, true],
    ['text/event-stream;q=0, application/json', true, false],
    ['application/json;q=0.0, text/event-stream', false, true],
    ['text/html', true, false],
    ['', true, false],
    [undefined, true, false],
    [['application/json', 'text/event-stream'], true, true],
  ])('%j: JSON %s, events %s', (header, json, sse) => {
    expect(acceptedForms(header)).toEqual({ json, sse })
  })
})
