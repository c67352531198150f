/** Messages that are something else than an object in JSON, or an object of other members: read-special-message.ts reads them. */
export const READ_BY_HAND: ReadonlySet<string> = new Set([
  'apiextensions.v1.JSON',
  'apiextensions.v1.JSONSchemaPropsOrArray',
  'apiextensions.v1.JSONSchemaPropsOrBool',
  'apiextensions.v1.JSONSchemaPropsOrStringArray',
  'intstr.IntOrString',
  'meta.v1.FieldsV1',
  'meta.v1.MicroTime',
  'meta.v1.Time',
  'resource.Quantity',
  'runtime.RawExtension',
])
