/** A validation rule in CEL, as `x-kubernetes-validations` takes it. */
export interface CelRule {
  rule: string
  message: string
  messageExpression?: string
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
  /** Relative path of the field the message is about, such as `.remoteUrl`. */
  fieldPath?: string
}

/**
 * The sub-object named like the discriminator's value must be there, and no other one of the union.
 * @param discriminator field that holds the member's name, such as `type`
 * @param members value of the discriminator → field that belongs to it
 */
export function unionRules(discriminator: string, members: Readonly<Record<string, string>>): CelRule[] {
  const fields = [...new Set(Object.values(members))]
  return fields.map((field) => {
    const values = Object.keys(members).filter((value) => members[value] === field)
    const isMember = values.map((value) => `self.${discriminator} == '${value}'`).join(' || ')
    return {
      rule: `(${isMember}) == has(self.${field})`,
      message: `${field} must be set if and only if ${discriminator} is ${values.join(' or ')}`,
    }
  })
}

/**
 * Two spellings of one field may both be set only if they say the same. Only for fields that CEL can see. Compared as `dyn`, because CEL
 * gives each object of a schema a type of its own.
 */
export function sameIfBoth(canonical: string, synonym: string): CelRule {
  return {
    rule: `!has(self.${canonical}) || !has(self.${synonym}) || dyn(self.${canonical}) == dyn(self.${synonym})`,
    message: `${canonical} and ${synonym} are two spellings of one field and must not differ: set ${canonical} only`,
  }
}

export function atMostOne(fields: readonly string[], message: string): CelRule {
  return { rule: `[${fields.map((f) => `has(self.${f})`).join(', ')}].filter(x, x).size() <= 1`, message }
}

export function exactlyOne(fields: readonly string[], message: string): CelRule {
  return { rule: `[${fields.map((f) => `has(self.${f})`).join(', ')}].filter(x, x).size() == 1`, message }
}
