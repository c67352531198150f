import { describe, expect, it } from 'vitest'
import { preparePolicies } from './prepare-policies.ts'

const PERMIT = 'permit(principal, action, resource);'
const document = (...policies: string[]) => JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies, entities_json: '[]' } })

describe('preparePolicies', () => {
  it.each<[string, string, RegExp]>([
    ['no JSON', '{"version":', /line 1, column 12: the document is not JSON/],
    ['an empty text', ' \n', /the document is empty/],
    ['a list', '[]', /the document expects an object/],
    ['a policy that does not parse', document('permit('), /^cedar\.policies\[0\]: unexpected end of input/],
    ['no policy', document(), /cedar\.policies is empty/],
    ['no Cedar at all', '{"version":"1.0","type":"cedarv1"}', /cedar is missing/],
    ['another version', document(PERMIT).replace('"1.0"', '"2.0"'), /version must be "1.0"/],
    ['another engine', '{"version":"1.0","type":"httpv1"}', /type must be cedarv1/],
    ['an unknown member', document(PERMIT).replace('entities_json', 'entitys_json'), /entitys_json is not a known field/],
    ['entities that are no list', document(PERMIT).replace('"[]"', '"{}"'), /^cedar\.entities_json: is not a JSON array/],
    ['entities that are no entities', document(PERMIT).replace('"[]"', '"[1]"'), /^cedar\.entities_json: /],
    [
      'a group type with a namespace',
      document(PERMIT).replace('"entities_json"', '"group_entity_type":"a::b","entities_json"'),
      /group_entity_type/,
    ],
    [
      'a candidate that does not parse',
      document(PERMIT).replace(/}$/, ',"candidate":{"policies":["permit("]}}'),
      /^candidate\.policies\[0\]: /,
    ],
    [
      'deep brackets',
      document(`permit(principal, action, resource) when { ${'('.repeat(200)}true${')'.repeat(200)} };`),
      /nested more than 100 deep/,
    ],
    ['two policies in one entry', document(`${PERMIT}${PERMIT}`), /^cedar\.policies\[0\]: /],
  ])('names what is wrong with %s', (_what, text, message) => {
    const prepared = preparePolicies({ text })
    expect(prepared).toMatchObject({ ok: false, problems: expect.arrayContaining([expect.stringMatching(message)]) })
  })

  it('has the same hash for the same document, whatever its form', () => {
    const hashOf = (text: string) => {
      const prepared = preparePolicies({ text })
      return prepared.ok ? prepared.hash : prepared.problems
    }
    const yaml = `version: 1.0\ntype: cedarv1\ncedar:\n  policies:\n    - ${PERMIT}\n`
    expect(hashOf(yaml)).toBe(hashOf(document(PERMIT)))
    expect(hashOf(document(PERMIT))).not.toBe(hashOf(document(PERMIT, PERMIT)))
  })
})
