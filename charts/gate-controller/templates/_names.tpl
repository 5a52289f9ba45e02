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

{{/* The second Deployment of pipelines.forge.separate, its account and its roles. */}}
{{- define "gate-controller.forge" -}}
{{- printf "%s-forge" (include "gate-controller.fullname" . | trunc 57 | trimSuffix "-") }}
{{- end }}

{{/* Its labels. Its name is another, so that no Service and no policy of the first takes it for one of its pods. */}}
{{- define "gate-controller.forgeSelectorLabels" -}}
app.kubernetes.io/name: {{ printf "%s-forge" (include "gate-controller.name" . | trunc 57 | trimSuffix "-") }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gate-controller.forgeLabels" -}}
{{ include "gate-controller.labels" . | replace (include "gate-controller.selectorLabels" .) (include "gate-controller.forgeSelectorLabels" .) }}
{{- end }}

{{/* Which kinds each of the two looks at, in the order in which the Lease is named after them. */}}
{{- define "gate-controller.forgeKinds" -}}
CommitStatus,GitRepositoryAccess,PromotionStrategy,PullRequest,RevertCommit
{{- end }}
{{- define "gate-controller.otherKinds" -}}
Gate,GatePolicy,GatedSource,Gatekeeper,Pipeline,Rollout
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
{{- $accounts := list (include "gate-controller.serviceAccountName" .) }}
{{- if .Values.pipelines.forge.separate }}
{{- $accounts = append $accounts (include "gate-controller.forge" .) }}
{{- end }}
{{- $names := list }}
{{- range $accounts }}
{{- $names = append $names (printf "system:serviceaccount:%s:%s" $.Release.Namespace .) }}
{{- end }}
{{- concat $names .Values.controllerUsernames | toJson }}
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

{{/* The account of the second Deployment as the subject of a binding. */}}
{{- define "gate-controller.forgeSubject" -}}
- kind: ServiceAccount
  name: {{ include "gate-controller.forge" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{/* A length of time, as Go writes it, in whole seconds. */}}
{{- define "gate-controller.seconds" -}}
{{- $beginning := toDate "2006-01-02" "1970-01-02" }}
{{- $end := mustDateModify . $beginning }}
{{- sub ($end | unixEpoch | int64) ($beginning | unixEpoch | int64) }}
{{- end }}

{{- /* The Lease of a shard: each has its own, as the controller names them. */ -}}
{{- define "gate-controller.lease" -}}
{{- $selector := .Values.controller.watchLabelSelector -}}
{{- if .Values.pipelines.forge.separate -}}
gate-controller-{{ printf "%s kinds=%s" $selector (include "gate-controller.otherKinds" .) | sha256sum | trunc 8 }}
{{- else if $selector -}}
gate-controller-{{ sha256sum $selector | trunc 8 }}
{{- else -}}
gate-controller
{{- end -}}
{{- end }}

{{- /* The Lease of the second Deployment. */ -}}
{{- define "gate-controller.forgeLease" -}}
gate-controller-{{ printf "%s kinds=%s" .Values.controller.watchLabelSelector (include "gate-controller.forgeKinds" .) | sha256sum | trunc 8 }}
{{- end }}
