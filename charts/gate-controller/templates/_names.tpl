{{/* The name of the chart, within a label's 63 characters. */}}
{{- define "gate-controller.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of what belongs to this release: RELEASE-gate-controller, said once. */}}
{{- define "gate-controller.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := include "gate-controller.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels that a selector may hold: they never change. */}}
{{- define "gate-controller.selectorLabels" -}}
app.kubernetes.io/name: {{ include "gate-controller.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of every object of this release. */}}
{{- define "gate-controller.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "gate-controller.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "gate-controller.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "gate-controller.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: must name an account that exists when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/*
The user names under which the controller acts, as a JSON list: its service account, then
controllerUsernames. A JSON list of strings is also a CEL list of strings.
*/}}
{{- define "gate-controller.usernames" -}}
{{- $account := printf "system:serviceaccount:%s:%s" .Release.Namespace (include "gate-controller.serviceAccountName" .) }}
{{- concat (list $account) .Values.controllerUsernames | toJson }}
{{- end }}

{{/* The same identities as subjects of a binding. */}}
{{- define "gate-controller.subjects" -}}
- kind: ServiceAccount
  name: {{ include "gate-controller.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- range .Values.controllerUsernames }}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ . | quote }}
{{- end }}
{{- end }}

{{/* A length of time, as Go writes it, in whole seconds. */}}
{{- define "gate-controller.seconds" -}}
{{- $beginning := toDate "2006-01-02" "1970-01-02" }}
{{- $end := mustDateModify . $beginning }}
{{- sub ($end | unixEpoch | int64) ($beginning | unixEpoch | int64) }}
{{- end }}

{{- /* The Lease of a shard: each has its own, as the controller names them. */ -}}
{{- define "gate-controller.lease" -}}
{{- with .Values.controller.watchLabelSelector -}}
gate-controller-{{ sha256sum . | trunc 8 }}
{{- else -}}
gate-controller
{{- end -}}
{{- end }}
