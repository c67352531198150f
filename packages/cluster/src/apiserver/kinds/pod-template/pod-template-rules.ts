import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { plainRules } from '../../objects/kind-rules.ts'
import type { KindRules } from '../../objects/served-kind.ts'
import { withoutDisabled } from '../pod/disabled-fields.ts'
import { templateDefaults } from '../pod/pod-defaults.ts'
import { tidied } from '../pod/tidy.ts'
import { changed, objectAt } from '../pod/validation/fields.ts'
import { templateProblems } from '../pod/validation/template-validation.ts'

/** A template that stands alone; no controller reads it. */
export const podTemplateRules: KindRules = plainRules('subdomain', {
  generation: ['template'],
  returnsDeleted: true,
  applyDefaults: (object) => ({
    ...object,
    template: templateDefaults(objectAt(tidied({ template: object['template'] ?? {} }), 'template')),
  }),
  prepareCreate: usable,
  prepareUpdate: usable,
  validate: (object) => templateProblems(objectAt(object, 'template') ?? {}, 'template'),
})

function usable(object: JsonObject): JsonObject {
  return changed(object, 'template', (template) => changed(template, 'spec', withoutDisabled))
}
