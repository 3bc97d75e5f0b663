#!/usr/bin/env python3
"""What must hold between the chart's rendered objects: rendered_chart_test.py DEFAULT EVERYTHING CERTIFICATES"""

import json
import pathlib
import re
import sys
import unittest

import yaml

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
RENDERED = {}  # objects by name: with the default values, with everything_values.yaml, with client certificates only


def find(objects, kind):
    return next(item for item in objects if item["kind"] == kind and item["metadata"]["name"] == "quire")


class RenderedChart(unittest.TestCase):
    def each(self):
        for objects in RENDERED.values():
            deployment = find(objects, "Deployment")
            pod = deployment["spec"]["template"]["spec"]
            settings = json.loads(find(objects, "ConfigMap")["data"]["server.json"])
            yield objects, deployment, pod, pod["containers"][0], settings

    def test_pod_outlives_its_drain(self):
        for _, _, pod, container, settings in self.each():
            left = container["lifecycle"]["preStop"]["sleep"]["seconds"]
            self.assertGreater(pod["terminationGracePeriodSeconds"], settings["drain_seconds"] + left)
            liveness = container["livenessProbe"]
            self.assertGreater(liveness["periodSeconds"] * liveness["failureThreshold"], settings["drain_seconds"])

    def test_pod_is_restricted(self):
        for _, _, pod, container, _ in self.each():
            self.assertEqual(pod["securityContext"]["runAsUser"], 10001)
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertIs(pod["automountServiceAccountToken"], False)
            self.assertEqual(container["securityContext"], {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})

    def test_memory_and_cpus_are_guaranteed(self):
        for _, _, _, container, settings in self.each():
            self.assertEqual(container["resources"]["requests"], container["resources"]["limits"])
            self.assertIsInstance(container["resources"]["limits"]["cpu"], int)
            self.assertNotIn("memory_budget", settings)

    def test_files_of_the_settings_are_mounted(self):
        for _, _, pod, container, settings in self.each():
            mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
            self.assertEqual(set(mounts.values()), {volume["name"] for volume in pod["volumes"]})
            for key in ("api_keys", "tls_certificate", "tls_key", "tls_client_ca"):
                if key in settings:
                    self.assertIn(settings[key].rpartition("/")[0], mounts)

    def test_everything_that_selects_finds_the_pods(self):
        for objects, deployment, _, _, _ in self.each():
            labels = deployment["spec"]["template"]["metadata"]["labels"].items()
            selectors = [item["spec"]["selector"] for item in objects if item["kind"] == "Service"]
            selectors += [item["spec"]["selector"]["matchLabels"] for item in objects
                          if item["kind"] in ("Deployment", "PodDisruptionBudget")]
            selectors.append(find(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"])
            for selector in selectors:
                self.assertLessEqual(selector.items(), labels)

    def test_probes_ask_as_the_ports_answer(self):
        default, everything, _ = (container for _, _, _, container, _ in self.each())
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual(default[probe]["grpc"]["port"], default["ports"][0]["containerPort"])
            self.assertIn("tcpSocket", everything[probe])  # with client certificates

    def test_callers_are_asked_who_they_are(self):
        for _, _, _, _, settings in self.each():
            self.assertTrue("api_keys" in settings or "tls_client_ca" in settings)
            self.assertNotIn("allow_unauthenticated", settings)

    def test_settings_are_the_servers(self):
        known = re.findall(r'^  "(\w+)":', (REPOSITORY / "configs" / "server_default.json").read_text(), re.MULTILINE)
        for _, _, _, _, settings in self.each():
            self.assertLessEqual(settings.keys(), set(known))

    def test_pods_are_scraped_once(self):
        objects = RENDERED["everything"]
        selector = find(objects, "ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
        services = [item for item in objects if item["kind"] == "Service"]
        scraped = [item["metadata"]["name"] for item in services if selector <= item["metadata"]["labels"].items()]
        self.assertEqual(scraped, ["quire"])

    def test_autoscaler_owns_the_replicas(self):
        self.assertNotIn("replicas", find(RENDERED["everything"], "Deployment")["spec"])
        self.assertEqual(find(RENDERED["default"], "Deployment")["spec"]["replicas"], 1)

    def test_pool_of_the_gateway_selects_the_pods(self):
        pool = REPOSITORY / "deploy" / "gateway" / "pool.yaml"
        spec = next(item for item in yaml.safe_load_all(pool.read_text()) if item["kind"] == "InferencePool")["spec"]
        deployment = find(RENDERED["default"], "Deployment")
        labels = deployment["spec"]["template"]["metadata"]["labels"].items()
        self.assertLessEqual(spec["selector"]["matchLabels"].items(), labels)
        ports = {port["name"]: port["containerPort"]
                 for port in deployment["spec"]["template"]["spec"]["containers"][0]["ports"]}
        self.assertEqual([port["number"] for port in spec["targetPorts"]], [ports["http"]])


if __name__ == "__main__":
    for name in ("default", "everything", "certificates"):
        path = sys.argv.pop(1)
        RENDERED[name] = [item for item in yaml.safe_load_all(pathlib.Path(path).read_text()) if item]
    unittest.main()
